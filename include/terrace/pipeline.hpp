// SPDX-License-Identifier: Apache-2.0
// The second half of the pipeline: from a workload to its profile, and to a plan that the verifier accepts.
//
//   Workload workload = prepare({.graph = graph}).value();
//   const auto budget = budget_of(workload, "20%").value();
//   workload = fit({.graph = graph}, std::move(workload), budget[0]).value();
//   const Profile profile = profile_of(workload, budget).value();
//   Planned planned = plan_of(workload, profile, budget, "prefetch").value();
//
// Whoever does not want to see these stages one by one takes session.hpp.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/planner.hpp"
#include "terrace/verify.hpp"
#include "terrace/workload.hpp"

namespace terrace {

/// Fails where so much fast memory is below the least, naming the kernel and the bytes missing.
Result<void> require_least(const Workload& workload, Bytes fast);

/// Times are measured where plans can be carried out, within the budget, and kept in the cache folder;
/// elsewhere they are estimated. Fails as require_least does.
Result<Profile> profile_of(const Workload& workload, const std::vector<Bytes>& budget,
                           const ProgressSink& progress = no_progress);

/// The file in the cache folder that keeps profiles, and what real steps have decided.
Result<std::filesystem::path> profile_store_file();

/// Keeps what a counted step gave, under each kernel's key, for profiles to come; in the cache folder.
void remember_accesses(const Program& program, const KernelAccesses& counted,
                       const ProgressSink& progress = no_progress);

/// Whoever makes a plan of a request: one of ours, or any other function.
using PlanFunction = std::function<Result<Plan>(const PlanRequest&)>;

/// The planner that make_plan knows by this name, or a program of others, as in `exec:./mine`, which `stop`
/// ends before it has a plan.
PlanFunction planner_named(std::string name, const std::stop_token& stop = {});

/// Whether the planner of this name goes on learning from one request of a graph to the next.
bool learns(std::string_view planner);

struct Planned {
  VerifiedPlan plan;
  Bytes fast;           ///< of the fastest tier, as it was given
  LeastBudget least;    ///< of the fastest tier that any plan needs
  Seconds planning{0};  ///< how long planning took, verifying included
};

/// Fails where the planner does, and where the verifier refuses its plan.
Result<Planned> plan_of(const Workload& workload, const Profile& profile, const std::vector<Bytes>& budget,
                        const PlanFunction& planner);
Result<Planned> plan_of(const Workload& workload, const Profile& profile, const std::vector<Bytes>& budget,
                        std::string_view planner);

/// Returns how long a step takes with every operand in the slowest tier that kernels can use in place;
/// nothing where that is the fastest.
std::optional<Seconds> slow_only(const Workload& workload, const Profile& profile);

}  // namespace terrace

// The pipeline behind a workload: its profile, then a plan that the verifier accepts.
//
//   Workload workload = prepare({.graph = graph}).value();
//   const auto budget = budget_of(workload, "20%").value();
//   workload = fit({.graph = graph}, std::move(workload), budget[0]).value();
//   const Profile profile = profile_of(workload, budget).value();
//   Planned planned = plan_of(workload, profile, budget, "prefetch").value();
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string_view>

#include "pipeline/workload.hpp"
#include "terrace/planner.hpp"

namespace terrace {

/// Fails where so much fast memory is below the least, naming the kernel and the bytes missing.
Result<void> require_least(const Workload& workload, Bytes fast);

/// Measured where plans can be carried out, within the budget, and kept in the cache folder; else estimated.
/// Fails as require_least does.
Result<Profile> profile_of(
    const Workload& workload, const std::vector<Bytes>& budget,
    const Told& progress = [](const std::string&) {});

/// Where profiles and decisions are kept: in the cache folder.
Result<std::filesystem::path> profile_store_file();

/// Keeps what a counted step gave, under each kernel's key, for profiles to come; in the cache folder.
void remember_accesses(
    const Program& program, const KernelAccesses& counted, const Told& progress = [](const std::string&) {});

struct Planned {
  VerifiedPlan plan;
  Bytes fast;           ///< of the fastest tier, as it was given
  LeastBudget least;    ///< of the fastest tier that any plan needs
  Seconds planning{0};  ///< what planning took, verifying and all
};

/// Fails as make_plan does, and where the verifier refuses the plan. A planner may be a program of others, as in
/// `exec:./mine`, which `stop` ends.
Result<Planned> plan_of(const Workload& workload, const Profile& profile, const std::vector<Bytes>& budget,
                        std::string_view planner, const std::stop_token& stop = {});

/// A step with every operand in the slowest tier that kernels can use in place; nothing where that is the
/// fastest.
std::optional<Seconds> slow_only(const Workload& workload, const Profile& profile);

}  // namespace terrace

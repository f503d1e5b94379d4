// SPDX-License-Identifier: Apache-2.0
// Planners: pure functions from a graph, a profile, a machine and a budget to a plan, or the reason why there
// is none. Every planner's plan passes the verifier.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "terrace/bounds.hpp"
#include "terrace/plan_request.hpp"

namespace terrace {

struct PlannerInfo {
  std::string_view name, summary;
  Result<Plan> (*plan)(const PlanRequest& request);
  std::string_view options = {};  ///< their names, with a space between
};

/// Sorted as users should read them: the best first.
std::span<const PlannerInfo> planners();

/// Checks that `make_plan` knows a planner of that name and its options.
Result<void> check_planner(std::string_view planner);

/// Plans, simulates and adds prediction and bound. `planner` is a name, or one with options:
/// `sentinel+reserve=off+interval=4`; those of the request come first. An unknown planner fails with the
/// closest names, a budget below the least with the kernel that needs most and the bytes missing.
Result<Plan> make_plan(std::string_view planner, const PlanRequest& request);

/// Makes a plan with a planner that is in no table. `plan` is given the request with every kernel narrowed to
/// the variant that was chosen for it, and must return a plan that the verifier accepts for that request.
Result<Plan> make_plan_by(const std::function<Result<Plan>(const PlanRequest&)>& plan, std::string_view name,
                          const PlanRequest& request);

}  // namespace terrace

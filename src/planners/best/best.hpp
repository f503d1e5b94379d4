// The planner `best`: plans guided by the bound's multipliers, asks other planners, too, and takes the plan
// with which the simulator is fastest. What it does and reaches: docs/planners/best.md.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// Fails with the reason of the first planner where none has a plan.
Result<Plan> plan_best(const PlanRequest& request);

}  // namespace terrace

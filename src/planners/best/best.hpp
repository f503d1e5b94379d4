// The planner `best`: asks several planners and takes the plan with which the simulator is fastest.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// Fails with the reason of the first planner where none has a plan.
Result<Plan> plan_best(const PlanRequest& request);

}  // namespace terrace

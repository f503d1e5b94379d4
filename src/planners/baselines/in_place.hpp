// SPDX-License-Identifier: Apache-2.0
// Planners that never move a tensor: kernels use it where it was put.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// Everything in the slowest tier that kernels can use in place; fails where only tier 0 is one.
Result<Plan> plan_all_slow(const PlanRequest& request);
/// A tensor goes to the fastest tier that kernels can use in place and has room when it is made, what
/// outlives steps before all others, and stays there for life (001 section 5). Fails where those are full.
Result<Plan> plan_first_touch(const PlanRequest& request);

}  // namespace terrace

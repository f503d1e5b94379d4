// SPDX-License-Identifier: Apache-2.0
// Planners that never move a tensor: kernels use it where it was put.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// Puts everything in the slowest tier that kernels can use in place; fails where only tier 0 is one.
Result<Plan> plan_all_slow(const PlanRequest& request);
/// Puts a tensor, when it is created, in the fastest tier with room that kernels can use in place, and leaves
/// it there for life (001 section 5). Tensors that outlive steps are placed before all others. Fails where no
/// such tier has room.
Result<Plan> plan_first_touch(const PlanRequest& request);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Planners that move a tensor when a kernel asks for it, and nothing ahead of time.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// Everything in tier 0; fails where that is too small.
Result<Plan> plan_all_fast(const PlanRequest& request);
/// Tensors come when they are used; the longest unused leave.
Result<Plan> plan_lru(const PlanRequest& request);
/// Tensors come when they are used; those with the farthest next use leave.
Result<Plan> plan_next_use(const PlanRequest& request);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Planners that move a tensor when a kernel asks for it, and nothing ahead of time.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// Keeps everything in tier 0; fails where that is too small.
Result<Plan> plan_all_fast(const PlanRequest& request);
/// Fetches a tensor when a kernel uses it; the least recently used tensors leave.
Result<Plan> plan_lru(const PlanRequest& request);
/// Fetches a tensor when a kernel uses it; the tensors with the farthest next use leave (Belady).
Result<Plan> plan_next_use(const PlanRequest& request);

}  // namespace terrace

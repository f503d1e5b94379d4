// SPDX-License-Identifier: Apache-2.0
// The modes of CachedArrays (003 section IV), each recorded from the manager and its policy of that name
// (recorded_policy.hpp, manager/policies/cached_arrays.cpp). What a kernel writes comes to fast memory, the
// least recently used leave, those archived before all others; every transfer is waited for at once.
//
// Where the policy finds no room, as in tiers too full for its heaps, the plan is the last resort of
// plan_to_fit() (planners/fit.hpp), which is nobody's policy.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// Everything is made in the slowest memory, as behind a cache; the dead stay until a collection. The copies
/// of what was only just made and holds nothing are left out.
Result<Plan> plan_cached_arrays_none(const PlanRequest& request);
/// L: new tensors are made in fast memory.
Result<Plan> plan_cached_arrays_l(const PlanRequest& request);
/// LM: the dead leave at once.
Result<Plan> plan_cached_arrays_lm(const PlanRequest& request);
/// LMP: what a kernel reads comes to fast memory, too.
Result<Plan> plan_cached_arrays_lmp(const PlanRequest& request);

}  // namespace terrace

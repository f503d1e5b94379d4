// SPDX-License-Identifier: Apache-2.0
// The modes of CachedArrays (003 section IV), each recorded from the manager and its policy of that name
// (recorded_policy.hpp, manager/policies/cached_arrays.cpp). Tensors that a kernel writes are brought to fast
// memory; archived tensors are evicted first, then the least recently used; every transfer is waited for at
// once.
//
// Where the policy finds no room, as with heaps too fragmented for it, the plan is the last resort of
// plan_to_fit() (migration/fit.hpp), which follows no policy.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// New tensors are created in the slowest memory, as behind a hardware cache, and dead ones stay until a
/// collection. The plan leaves out copies of new tensors that hold nothing yet.
Result<Plan> plan_cached_arrays_none(const PlanRequest& request);
/// L: new tensors are created in fast memory.
Result<Plan> plan_cached_arrays_l(const PlanRequest& request);
/// LM: as L, and dead tensors are freed at once.
Result<Plan> plan_cached_arrays_lm(const PlanRequest& request);
/// LMP: as LM, and tensors that a kernel reads are brought to fast memory, too.
Result<Plan> plan_cached_arrays_lmp(const PlanRequest& request);

}  // namespace terrace

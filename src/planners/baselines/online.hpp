// Planners that record an online policy: one that decides as the step goes on, without knowing the rest.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// The improved active list that 000 section 6 compares with: a list of active and one of inactive tensors
/// for fast and for slower memory, each in the order of arrival, with a mark for those that were used. A
/// tensor used again while marked becomes active. At the end of every layer, active tensors of slower memory
/// change places with inactive ones of fast memory; a kernel waits only for what it cannot use in place.
Result<Plan> plan_active_list(const PlanRequest& request);

// The modes of CachedArrays (003 section IV), by its rules: what a kernel writes comes to fast memory, the
// least recently used leave, those archived before all others. The mode without L would copy every array
// that was made before it holds anything, which no plan does.

/// L: new tensors are made in fast memory; dead ones stay until there is no other room.
Result<Plan> plan_cached_arrays_l(const PlanRequest& request);
/// LM: the dead leave at once.
Result<Plan> plan_cached_arrays_lm(const PlanRequest& request);
/// LMP: what a kernel reads comes to fast memory, too.
Result<Plan> plan_cached_arrays_lmp(const PlanRequest& request);

}  // namespace terrace

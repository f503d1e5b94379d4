// SPDX-License-Identifier: Apache-2.0
// A planner that decides as the step goes on, without knowing the rest. See also cached_arrays.hpp.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// The improved active list that 000 section 6 compares with: a list of active and one of inactive tensors
/// for fast and for slower memory, each in the order of arrival, with a mark for those that were used. A
/// tensor used again while marked becomes active. At the end of every layer, active tensors of slower memory
/// change places with inactive ones of fast memory; a kernel waits only for what it cannot use in place.
Result<Plan> plan_active_list(const PlanRequest& request);

}  // namespace terrace

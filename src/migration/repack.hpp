// SPDX-License-Identifier: Apache-2.0
// Offsets for a plan whose regions are settled and whose places are not.
#pragma once

#include "migration/plan_regions.hpp"

namespace terrace {

/// The plan with offsets, and with what it needs as its budget: more than the request's where the regions
/// could not be packed into it. What a copy carries as one lies side by side, as far as its regions can. A
/// plan that makes a region twice, or ends one that is not there, stays as it is: the verifier tells what is
/// wrong with it.
Plan with_offsets(const PlanRequest& request, Plan plan);

/// The same with neighbours that the caller chose. pre: holds_together(request, plan), and the regions are
/// the plan's
Plan with_offsets(const PlanRequest& request, Plan plan, const PlanRegions& regions,
                  const Neighbours& neighbours);

}  // namespace terrace

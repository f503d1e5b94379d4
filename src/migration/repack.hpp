// SPDX-License-Identifier: Apache-2.0
// Offsets for a plan whose regions are settled and whose places are not.
#pragma once

#include "terrace/plan_request.hpp"

namespace terrace {

/// The plan with offsets, and with what it needs as its budget: more than the request's where the regions
/// could not be packed into it. A plan that makes a region twice, or ends one that is not there, stays as it
/// is: the verifier tells what is wrong with it.
Plan with_offsets(const PlanRequest& request, Plan plan);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Plans for a tier that tier 0 has no links with, such as a disk behind a GPU's pinned memory: bytes reach it
// by hops over a tier between.
//
//   near     a slower tier that tier 0 is linked with
//   far      one that only a near tier is linked with
//
// A planner knows near tiers alone. Where they are too small it plans as if the near tier were as large as
// both, and what does not fit there is carried on: a value waits in the far tier between the transfer that
// brought it to the near one and the transfer that takes it back, and what outlives the step may be at home
// there. Transfers over the far links come after others by tickets, so that kernels wait only where the near
// tier is full.
#pragma once

#include <functional>
#include <optional>

#include "terrace/plan_request.hpp"

namespace terrace {

struct Hop {
  TierId near, far;
};

/// The first tier that is reached by a hop; none where there is none, or where kernels could use it in place.
std::optional<Hop> hop_of(const Machine& machine);

/// The plan with what exceeds the near tier's budget carried on to the far one. Fails where that cannot hold
/// what has to be there either. pre: the plan is safe on the same machine with a near tier that is larger
Result<Plan> with_hops(const PlanRequest& request, Hop hop, const Plan& plan);

/// Makes a plan, by hops where that is the only way.
Result<Plan> plan_by_hops(const PlanRequest& request,
                          const std::function<Result<Plan>(const PlanRequest&)>& make);

}  // namespace terrace

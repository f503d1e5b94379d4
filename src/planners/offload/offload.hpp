// SPDX-License-Identifier: Apache-2.0
// Updates beside the rest of the step: any planner's plan, with the kernels that update weights and the
// states of an optimizer on a second engine (as ZeRO-Offload does, 002 section 5.4.1), which works on one
// layer while the first engine computes the next one's gradients. With them may go the gradients of weights,
// for which only updates wait.
//
// What an update uses is freed so many kernels later, and everything is packed again, so that the first
// engine does not stop for memory. Several such delays are tried with and without gradients, as far as
// the budget has room for them, and the simulator's fastest counts; the planner's own plan is among them.
#pragma once

#include <string_view>

#include "terrace/plan_request.hpp"

namespace terrace {

/// Fails where the machine has no further engine of that name. pre: the verifier accepts the plan
Result<Plan> with_updates_on(std::string_view engine, const PlanRequest& request, const Plan& plan);

}  // namespace terrace

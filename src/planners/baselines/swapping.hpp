// SPDX-License-Identifier: Apache-2.0
// Planners that choose stretches without a use in which tensors are out of fast memory. Where their choices
// do not fit the budget, all but vDNN move tensors on demand.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// vDNN: where not everything fits, a convolution's input is evicted during its last use of the forward pass
/// and prefetched one layer ahead of its first use of the backward pass; all other tensors stay. The error
/// names the bytes that are missing where that does not suffice.
Result<Plan> plan_vdnn(const PlanRequest& request);
/// Capuchin: swaps the tensors whose transfers kernels hide completely, the most time to spare first. Where
/// that does not free enough, it recomputes tensors or waits for swaps, whichever costs less time for each
/// byte.
Result<Plan> plan_capuchin(const PlanRequest& request);
/// SwapAdvisor: a genetic search over the stretches in which tensors are out, over when evictions have to be
/// complete and how far ahead fetches start; its fitness is the simulated time. The option `generations`
/// bounds the search; 0 takes the best individual of the first population.
Result<Plan> plan_swap_advisor(const PlanRequest& request);
/// L2L: fast memory holds one layer at a time. Its weights, states and activations come when it begins, which
/// waits for them, and leave when it is over, whatever there is room for.
Result<Plan> plan_l2l(const PlanRequest& request);

}  // namespace terrace

// Planners that choose stretches without a use in which tensors are out of fast memory. Where their choices
// do not fit the budget, all but vDNN move tensors on demand.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// vDNN: where not everything fits, what a convolution reads leaves during its last use forward and comes
/// back one layer ahead of its first use backward; all else stays. Fails with the bytes missing even so.
Result<Plan> plan_vdnn(const PlanRequest& request);
/// Capuchin: swaps what its kernels' measured times hide completely, the most time to spare first; beyond
/// that, recomputes or swaps in plain view, whichever saves more bytes for its time.
Result<Plan> plan_capuchin(const PlanRequest& request);
/// SwapAdvisor: a genetic search over which stretches are out, when they are left and how far ahead fetches
/// start; simulated time is the fitness. The option `generations` bounds it; 0 takes the start of the search.
Result<Plan> plan_swap_advisor(const PlanRequest& request);

}  // namespace terrace

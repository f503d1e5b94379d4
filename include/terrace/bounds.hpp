// What no plan can beat: a lower bound of the step time, and the least fast memory that any plan needs.
#pragma once

#include "terrace/plan_request.hpp"

namespace terrace {

/// What no plan for this graph, machine and budget can be faster than that runs kernels in the graph's order.
struct Bound {
  Seconds step{0};      ///< of plans that may also compute things again
  Seconds moving{0};    ///< of plans that compute everything once
  Seconds compute{0};   ///< all kernels with everything in fast memory
  Seconds transfer{0};  ///< how long the links are busy with what cannot stay, if nothing is computed again
};
Bound step_bound(const PlanRequest& request);

/// The least of tier 0 any plan needs, and the kernel whose operands take it.
struct LeastBudget {
  Bytes bytes;
  KernelId kernel;  ///< none: inputs and results take it
};
LeastBudget least_budget(const Graph& graph, const Machine& machine);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// What no plan can beat: a lower bound of the step time, and the least fast memory that any plan needs.
#pragma once

#include "terrace/plan_request.hpp"

namespace terrace {

/// What no plan for this graph, machine and budget can be faster than that runs kernels in the graph's order.
/// On a machine with several engines it holds for any order and any choice of engines: it is then the time of
/// the longest chain of kernels that need each other's results, or of all kernels divided among the engines.
struct Bound {
  Seconds step{0};      ///< of plans that may also recompute values
  Seconds moving{0};    ///< of plans that compute everything once
  Seconds compute{0};   ///< all kernels with everything in fast memory
  Seconds transfer{0};  ///< how long the links are busy with what cannot stay, if nothing is recomputed
};
Bound step_bound(const PlanRequest& request);

/// The least of tier 0 that any plan needs that runs all kernels on engine 0, and the kernel whose operands
/// take it.
struct LeastBudget {
  Bytes bytes;
  KernelId kernel;  ///< none: inputs and results take it
};
LeastBudget least_budget(const Graph& graph, const Machine& machine);

}  // namespace terrace

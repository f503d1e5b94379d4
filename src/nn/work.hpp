// What one run of a kernel costs: floating-point operations, and bytes touched in each operand.
#pragma once

#include "terrace/graph.hpp"

namespace terrace {

/// Fills in `flops` and every operand's `touched`.
void count_work(const Graph& graph, Kernel& kernel);

}  // namespace terrace

// Splits kernels whose operands do not fit in fast memory together.
//
// A tensor is a piece of memory, so one that is cut becomes several tensors, its parts, and every kernel that
// touches it works on parts. Weights are cut by rows, with their gradients, states and statistics: updates
// work on rows, a linear layer on columns of its output, which are put together, its backward pass on
// summands, which are added. Activations are cut by the batch, where an operation allows it. What the parts
// compute is what the whole would; only where summands are added, and where a library sums in another order,
// does rounding differ. All runs of one split graph give the same bits.
#pragma once

#include <string>

#include "terrace/graph.hpp"

namespace terrace {

struct Split {
  Graph graph;
  std::size_t kernels = 0;  ///< of the given graph, that are worked on in parts
  std::string obstacle;     ///< why the largest kernel that still exceeds the limit was left as it is; empty:
                            ///< there is none
};

/// A graph that computes the same, in which no kernel's operands together have more bytes than `limit` where
/// splitting can achieve that; an output that may take over an input's memory counts as if it did. Parts are
/// made small enough for two of them. Kernels that fit are left alone, unless they touch what another had to
/// cut. pre: the graph is valid, without layouts and workspaces
Split split_to_fit(const Graph& graph, Bytes limit);

}  // namespace terrace

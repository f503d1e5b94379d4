// From a graph of operations to a graph this processor can run: every tensor gets the layout its kernels
// want, changes of layout become kernels of their own, and scratch memory becomes tensors.
//
// Weights are kept in the layout their forward kernel likes best. Operations without a preference take their
// operands as they come. What oneDNN prefers depends on the processor and the number of threads, so a lowered
// graph is for one computer and thread count.
#pragma once

#include "terrace/graph.hpp"

namespace terrace::cpu {

/// pre: a valid graph without layouts. Fails where an operation cannot be run (a foreign one).
Result<Graph> lower(const Graph& graph, unsigned threads);

}  // namespace terrace::cpu

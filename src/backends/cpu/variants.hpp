// SPDX-License-Identifier: Apache-2.0
// Variants that a plan may choose from without changing results.
//
// Two implementations of a kernel add in different orders, so most of them differ in the last bits; whether
// they do depends on the shape and the number of threads, and nothing in oneDNN says. It is tried, on random
// operands, when a graph is compiled: what is offered gives the bits of the first variant
// (docs/decisions/009-variants.md).
#pragma once

#include "terrace/graph.hpp"

namespace terrace::cpu {

/// Adds to matrix products the implementations that give the same bits in less workspace; other operations of
/// the zoo have next to none. Takes memory for the operands of one kernel while it tries, and offers nothing
/// for kernels whose operands are too large for that. pre: `lower` made the graph, for as many threads as
/// OpenMP has now
Graph with_variants(Graph graph);

/// Adds the direct algorithm to convolutions that have Winograd's, where it takes the same layouts and no
/// workspace: slower in less memory, with other bits. Which of them runs is part of what a run computes, so
/// that a run with the same bits has the plan's variants (`as_planned`). pre: `lower` made the graph
Graph with_direct_convolutions(Graph graph);

}  // namespace terrace::cpu

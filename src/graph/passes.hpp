// SPDX-License-Identifier: Apache-2.0
// Rewrites of a graph that keep its results: every one takes a valid graph and returns a valid one.
#pragma once

#include "terrace/graph.hpp"

namespace terrace {

/// Lets an output take over an input's memory wherever the kernel allows it and nobody reads the input later.
Graph share_in_place(Graph graph);

/// Removes tensors that no kernel uses, that are no results and do not outlive steps.
Graph drop_unused(Graph graph);

/// Reorders kernels, within what they read and write, so that less is live at once: updates run as soon as
/// their gradient is complete, and independent branches in the order that frees most. The given order stays
/// unless another one has a lower peak.
Graph schedule(Graph graph);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// A layer step is a run of consecutive kernels of one layer and phase.
#pragma once

#include <cstddef>

#include "terrace/graph.hpp"

namespace terrace {

/// Returns whether the kernel is the last one of its layer step.
inline bool ends_layer_step(const Graph& graph, std::size_t kernel) {
  if (kernel + 1 == graph.kernels.size()) return true;
  const Kernel &here = graph.kernels[kernel], &next = graph.kernels[kernel + 1];
  return here.layer != next.layer || here.phase != next.phase;
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Tokens: tensors that stand for state outside of operands, such as a random generator's.
//
// The bytes of a token mean nothing, so no copy of it brings its state back: a kernel that has one for an
// operand runs once in a step, and the kernels of one token in the graph's order. Planners ask `has_token`
// before they recompute, and the verifier refuses what does otherwise.
#pragma once

#include <algorithm>

#include "terrace/graph.hpp"

namespace terrace {

inline bool is_token(const Tensor& tensor) { return tensor.kind == TensorKind::token; }

/// Returns whether the kernel uses state outside of its operands, so that it cannot run again.
inline bool has_token(const Graph& graph, const Kernel& kernel) {
  const auto is_one = [&](const Operand& operand) { return is_token(graph[operand.tensor]); };
  return std::any_of(kernel.inputs.begin(), kernel.inputs.end(), is_one) ||
         std::any_of(kernel.outputs.begin(), kernel.outputs.end(), is_one);
}

}  // namespace terrace

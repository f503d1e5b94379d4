// SPDX-License-Identifier: Apache-2.0
// Graphs of foreign kernels with operands of given sizes, and a machine with round figures.
#pragma once

#include <string>
#include <vector>

#include "terrace/graph.hpp"
#include "terrace/machine.hpp"

namespace terrace {

inline TensorId add_tensor(Graph& graph, std::uint64_t bytes) {
  Tensor tensor;
  tensor.name = "t" + std::to_string(graph.tensors.size());
  tensor.bytes = Bytes{bytes};
  graph.tensors.push_back(tensor);
  return {static_cast<std::uint32_t>(graph.tensors.size() - 1)};
}

inline Operand whole(const Graph& graph, TensorId id) { return {id, {}, graph[id].bytes, ""}; }

/// Reads tensors of these sizes and writes others.
inline Graph one_kernel(const std::vector<std::uint64_t>& inputs, const std::vector<std::uint64_t>& outputs,
                        double flops) {
  Graph graph;
  Kernel kernel;
  kernel.flops = flops;
  for (const std::uint64_t bytes : inputs) kernel.inputs.push_back(whole(graph, add_tensor(graph, bytes)));
  for (const std::uint64_t bytes : outputs) kernel.outputs.push_back(whole(graph, add_tensor(graph, bytes)));
  graph.kernels.push_back(kernel);
  return graph;
}

inline void add_workspace(Graph& graph, std::uint64_t bytes) {
  graph.kernels.back().workspace = add_tensor(graph, bytes);
}

/// 100 operations a second; fast: 10 bytes read and 5 written a second; slow: 2 and 1.
inline Machine two_tier_machine() {
  Machine machine;
  MachineTier fast, slow;
  fast.name = "fast", slow.name = "slow";
  fast.capacity = slow.capacity = Bytes{1 << 20};
  fast.read = {10}, fast.write = {5};
  slow.read = {2}, slow.write = {1};
  machine.tiers = {fast, slow};
  machine.compute.flops_per_second = 100;
  return machine;
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "profile/roofline.hpp"

#include <algorithm>

namespace terrace {

std::size_t operand_count(const Kernel& kernel) {
  return kernel.inputs.size() + kernel.outputs.size() + (kernel.workspace ? 1 : 0);
}

OperandUse operand_use(const Graph& graph, const Kernel& kernel, std::size_t operand) {
  const std::size_t inputs = kernel.inputs.size(), outputs = kernel.outputs.size();
  if (operand < inputs) return {kernel.inputs[operand].touched, {}};
  if (operand < inputs + outputs) return {{}, kernel.outputs[operand - inputs].touched};
  const Bytes scratch = graph[kernel.workspace].bytes;
  return {scratch, scratch};
}

Pattern pattern_of(const Graph& graph, const Kernel& kernel) {
  Bytes touched;
  for (std::size_t i = 0; i < operand_count(kernel); ++i) {
    const OperandUse use = operand_use(graph, kernel, i);
    touched += use.read + use.written;
  }
  return kernel.flops > kTiledOperations * static_cast<double>(touched.count) ? Pattern::tiled
                                                                              : Pattern::streaming;
}

Seconds access_time(const MachineTier& tier, OperandUse use, Pattern pattern) {
  const BytesPerSecond write = pattern == Pattern::tiled ? tier.tiled_write.value_or(tier.write) : tier.write;
  return tier.latency + use.read / tier.read + use.written / write;
}

DataType arithmetic_type(const Graph& graph, const Kernel& kernel) {
  const auto& operands = kernel.inputs.empty() ? kernel.outputs : kernel.inputs;
  return operands.empty() ? DataType::f32 : graph[operands.front().tensor].type;
}

Seconds roofline(const Graph& graph, const Kernel& kernel, const Machine& machine) {
  Seconds memory{0};
  const Pattern pattern = pattern_of(graph, kernel);
  for (std::size_t i = 0; i < operand_count(kernel); ++i) {
    memory += access_time(machine.tiers.front(), operand_use(graph, kernel, i), pattern);
  }
  return std::max(memory, Seconds{kernel.flops / machine.compute.rate(arithmetic_type(graph, kernel))});
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/check.hpp"
#include "profile/roofline.hpp"
#include "terrace/profile.hpp"

namespace terrace {
namespace {

bool holds(const std::vector<Operand>& operands, TensorId tensor) {
  return std::any_of(operands.begin(), operands.end(),
                     [tensor](const Operand& operand) { return operand.tensor == tensor; });
}

}  // namespace

Accesses assumed_accesses(const Graph& graph, KernelId id, std::size_t operand) {
  const Kernel& kernel = graph[id];
  check(operand < operand_count(kernel), "the kernel has that operand");
  const std::size_t inputs = kernel.inputs.size(), outputs = kernel.outputs.size();
  if (operand == inputs + outputs) return {1, 1};
  const TensorId tensor =
      operand < inputs ? kernel.inputs[operand].tensor : kernel.outputs[operand - inputs].tensor;
  return {holds(kernel.inputs, tensor) ? 1.0 : 0.0, holds(kernel.outputs, tensor) ? 1.0 : 0.0};
}

Accesses accesses(const Graph& graph, const Profile& profile, KernelId kernel, std::size_t operand) {
  check(kernel.index < profile.kernels.size(), "the profile is of this graph");
  const auto& counted = profile.kernels[kernel.index].operands;
  if (operand < counted.size() && counted[operand].pages > 0) return counted[operand];
  return assumed_accesses(graph, kernel, operand);
}

}  // namespace terrace

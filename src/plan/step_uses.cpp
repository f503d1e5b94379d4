// SPDX-License-Identifier: Apache-2.0
#include "plan/step_uses.hpp"

#include <algorithm>

namespace terrace {
namespace {

/// Kernels have a handful of operands: looking through them beats any table.
Use& use_of(std::vector<Use>& uses, std::size_t begin, TensorId tensor) {
  const auto from = uses.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto found = std::find_if(from, uses.end(), [&](const Use& use) { return use.tensor == tensor; });
  if (found != uses.end()) return *found;
  return uses.emplace_back(Use{tensor});
}

}  // namespace

StepUses::StepUses(const Graph& graph) {
  for (const Kernel& kernel : graph.kernels) {
    const std::size_t begin = uses_.size();
    begin_.push_back(begin);
    for (const Operand& operand : kernel.inputs) use_of(uses_, begin, operand.tensor).reads = true;
    for (const Operand& operand : kernel.outputs) use_of(uses_, begin, operand.tensor).writes = true;
    if (kernel.workspace) use_of(uses_, begin, kernel.workspace).writes = true;
  }
  begin_.push_back(uses_.size());
  for (const TensorId result : graph.results) use_of(uses_, begin_.back(), result).reads = true;
  begin_.push_back(uses_.size());
  link(graph.tensors.size());
}

void StepUses::link(std::size_t tensors) {
  first_.assign(tensors, kNever);
  first_reads_.assign(tensors, false);
  for (std::uint32_t kernel = kernels() + 1; kernel-- > 0;) {
    for (std::size_t i = begin_[kernel]; i < begin_[kernel + 1]; ++i) {
      Use& use = uses_[i];
      use.next = first_[use.tensor.index];
      use.next_reads = first_reads_[use.tensor.index];
      first_[use.tensor.index] = kernel;
      first_reads_[use.tensor.index] = use.reads;
    }
  }
}

}  // namespace terrace

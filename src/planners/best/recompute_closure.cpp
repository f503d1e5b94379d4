// SPDX-License-Identifier: Apache-2.0
#include "planners/best/recompute_closure.hpp"

#include "planners/best/state_snapshots.hpp"

namespace terrace::best {
namespace {

bool has_operand(const std::vector<Operand>& operands, TensorId tensor) {
  return std::any_of(operands.begin(), operands.end(),
                     [&](const Operand& operand) { return operand.tensor == tensor; });
}

}  // namespace

RecomputeClosure::RecomputeClosure(const Graph& graph, const StepUses& uses, const Machine& machine)
    : graph_(graph),
      uses_(uses),
      keeps_snapshots_(StateSnapshots::possible(machine)),
      writers_(graph.tensors.size()),
      is_result_(graph.tensors.size()),
      in_kernels_(graph.kernels.size()),
      in_tensors_(graph.tensors.size()) {
  for (const TensorId result : graph.results) is_result_[result.index] = true;
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    for (const Operand& output : graph.kernels[k].outputs) writers_[output.tensor.index].push_back(k);
  }
}

bool RecomputeClosure::can_go(TensorId tensor) const {
  const Tensor& what = graph_[tensor];
  return !what.persistent && !is_given(what) && !is_result_[tensor.index];
}

bool RecomputeClosure::is_changed(TensorId tensor, std::uint32_t after, std::uint32_t before) const {
  const auto& writers = writers_[tensor.index];
  const auto next = std::upper_bound(writers.begin(), writers.end(), after);
  return next != writers.end() && *next < before;
}

bool RecomputeClosure::is_read_twice(std::uint32_t k, TensorId tensor, std::uint32_t before) const {
  if (is_result_[tensor.index] || !has_operand(graph_.kernels[k].inputs, tensor)) return false;
  if (!keeps_snapshots_) return false;
  const auto uses = uses_.of(k);
  const auto use =
      std::find_if(uses.begin(), uses.end(), [&](const Use& one) { return one.tensor == tensor; });
  return use->next == kNever || use->next >= before;
}

}  // namespace terrace::best

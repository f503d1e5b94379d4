// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "graph/passes.hpp"
#include "terrace/lifetimes.hpp"

namespace terrace {
namespace {

class Sharing {
 public:
  explicit Sharing(Graph graph)
      : graph_(std::move(graph)), lifetimes_(graph_), owner_(graph_.tensors.size()) {
    for (std::uint32_t i = 0; i < owner_.size(); ++i) {
      owner_[i] = {i};
      last_.push_back(lifetimes_[{i}].last);
    }
  }

  Graph run() && {
    for (std::uint32_t k = 0; k < graph_.kernels.size(); ++k) {
      Kernel& kernel = graph_.kernels[k];
      for (auto* operands : {&kernel.inputs, &kernel.outputs}) {
        for (Operand& operand : *operands) operand.tensor = owner_[operand.tensor.index];
      }
      for (const InPlacePair& pair : kernel.in_place) try_share(k, kernel, pair);
    }
    return std::move(graph_);
  }

 private:
  void try_share(std::uint32_t position, Kernel& kernel, const InPlacePair& pair) {
    const TensorId from = kernel.inputs[pair.input].tensor;
    Operand& out = kernel.outputs[pair.output];
    if (from == out.tensor || !may_be_overwritten(position, kernel, from) || !is_new(position, out.tensor))
      return;
    if (!fits(graph_[from], graph_[out.tensor])) return;
    owner_[out.tensor.index] = from;
    last_[from.index] = last_[out.tensor.index];
    // At once: whoever comes next must see that this memory is kept.
    std::replace(graph_.results.begin(), graph_.results.end(), out.tensor, from);
    out.tensor = from;
  }

  bool may_be_overwritten(std::uint32_t position, const Kernel& kernel, TensorId id) const {
    const Tensor& tensor = graph_[id];
    if (tensor.persistent || tensor.kind == TensorKind::input || last_[id.index] != position) return false;
    if (std::find(graph_.results.begin(), graph_.results.end(), id) != graph_.results.end()) return false;
    const auto same = [&](const Operand& operand) { return operand.tensor == id; };
    return std::count_if(kernel.inputs.begin(), kernel.inputs.end(), same) == 1 &&
           std::none_of(kernel.outputs.begin(), kernel.outputs.end(), same);
  }

  bool is_new(std::uint32_t position, TensorId id) const { return lifetimes_[id].producer.index == position; }

  static bool fits(const Tensor& a, const Tensor& b) {
    return a.bytes == b.bytes && a.type == b.type && a.layout == b.layout &&
           (a.layout.empty() || a.shape == b.shape);
  }

  Graph graph_;
  Lifetimes lifetimes_;  ///< of the graph as it was
  std::vector<TensorId> owner_;
  std::vector<std::uint32_t> last_;  ///< of each owner, with what it took over
};

}  // namespace

Graph share_in_place(Graph graph) { return drop_unused(Sharing(std::move(graph)).run()); }

Graph drop_unused(Graph graph) {
  const Lifetimes lifetimes(graph);
  std::vector<bool> is_result(graph.tensors.size());
  for (const TensorId result : graph.results) is_result[result.index] = true;
  std::vector<TensorId> renamed(graph.tensors.size());
  std::vector<Tensor> kept;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (!lifetimes[{i}].used && !is_result[i] && !graph.tensors[i].persistent) continue;
    renamed[i] = {static_cast<std::uint32_t>(kept.size())};
    kept.push_back(std::move(graph.tensors[i]));
  }
  graph.tensors = std::move(kept);
  for (Kernel& kernel : graph.kernels) {
    for (auto* operands : {&kernel.inputs, &kernel.outputs}) {
      for (Operand& operand : *operands) operand.tensor = renamed[operand.tensor.index];
    }
    if (kernel.workspace) kernel.workspace = renamed[kernel.workspace.index];
  }
  for (TensorId& result : graph.results) result = renamed[result.index];
  return graph;
}

}  // namespace terrace

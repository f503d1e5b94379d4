// SPDX-License-Identifier: Apache-2.0
#include "terrace/lifetimes.hpp"

#include <algorithm>

#include "graph/layer_steps.hpp"
#include "graph/operand_tensors.hpp"

namespace terrace {
namespace {

std::vector<std::uint32_t> count_layer_steps(const Graph& graph) {
  std::vector<std::uint32_t> steps(graph.kernels.size());
  for (std::size_t i = 1; i < steps.size(); ++i) {
    steps[i] = steps[i - 1] + (ends_layer_step(graph, i - 1) ? 1 : 0);
  }
  return steps;
}

void note_uses(const Graph& graph, std::vector<Lifetime>& lifetimes) {
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    for_each_operand_tensor(graph.kernels[k], [&](TensorId id) {
      auto& users = lifetimes[id.index].users;
      if (users.empty() || users.back().index != k) users.push_back({k});
    });
    for (const Operand& out : graph.kernels[k].outputs) {
      Lifetime& lifetime = lifetimes[out.tensor.index];
      const Tensor& tensor = graph[out.tensor];
      if (!lifetime.producer && !tensor.persistent && tensor.kind != TensorKind::input)
        lifetime.producer = {k};
    }
  }
}

}  // namespace

Lifetimes::Lifetimes(const Graph& graph)
    : lifetimes_(graph.tensors.size()), live_(graph.kernels.size()), steps_(count_layer_steps(graph)) {
  if (graph.kernels.empty()) return;
  note_uses(graph, lifetimes_);
  const auto end = static_cast<std::uint32_t>(graph.kernels.size() - 1);
  for (std::size_t i = 0; i < lifetimes_.size(); ++i) {
    Lifetime& lifetime = lifetimes_[i];
    const Tensor& tensor = graph.tensors[i];
    lifetime.used = !lifetime.users.empty();
    if (!lifetime.used) continue;
    const bool given = tensor.persistent || tensor.kind == TensorKind::input;
    lifetime.first = given ? 0 : lifetime.users.front().index;
    lifetime.last = tensor.persistent ? end : lifetime.users.back().index;
  }
  for (const TensorId id : graph.results) lifetimes_[id.index].last = end;

  std::vector<std::int64_t> change(graph.kernels.size() + 1);
  for (std::size_t i = 0; i < lifetimes_.size(); ++i) {
    Lifetime& lifetime = lifetimes_[i];
    if (!lifetime.used) continue;
    lifetime.first_step = steps_[lifetime.first];
    lifetime.last_step = steps_[lifetime.last];
    const auto bytes = static_cast<std::int64_t>(graph.tensors[i].bytes.count);
    change[lifetime.first] += bytes;
    change[lifetime.last + 1] -= bytes;
  }
  std::int64_t live = 0;
  for (std::uint32_t k = 0; k <= end; ++k) {
    live += change[k];
    live_[k] = Bytes{static_cast<std::uint64_t>(live)};
    if (live_[k] > peak_) {
      peak_ = live_[k];
      peak_kernel_ = {k};
    }
  }
}

}  // namespace terrace

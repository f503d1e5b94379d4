// SPDX-License-Identifier: Apache-2.0
// Evaluates a solution of an instance: its time, its bytes, and the tiers in which kernels find their
// operands.
#include <algorithm>
#include <tuple>

#include "base/check.hpp"
#include "planners/autotm/model/instance.hpp"

namespace terrace::autotm {

Seconds step_time(const Instance& instance, const Solution& solution) {
  Seconds total{0};
  std::vector<Seconds> beside(instance.moments());
  for (std::size_t t = 0; t < instance.tensors.size(); ++t) {
    for (const std::uint32_t index : solution.paths[t]) {
      const Edge& edge = instance.tensors[t].edges[index];
      (edge.beside ? beside[edge.moment] : total) += edge.time;
    }
  }
  for (std::uint32_t k = 0; k < instance.kernels.size(); ++k) {
    total += std::max(instance.kernels[k].configurations[solution.configurations[k]].time, beside[k + 1]);
  }
  return total;
}

std::vector<Bytes> occupancy(const Instance& instance, const Solution& solution, TierId pool) {
  std::vector<Bytes> change(instance.moments() + 1);  // wraps below zero and back
  for (std::size_t t = 0; t < instance.tensors.size(); ++t) {
    for (const std::uint32_t index : solution.paths[t]) {
      const Edge& edge = instance.tensors[t].edges[index];
      if (edge.pool != pool || edge.first > edge.last) continue;
      change[edge.first] += instance.tensors[t].size;
      change[edge.last + 1] -= instance.tensors[t].size;
    }
  }
  for (std::size_t m = 1; m < change.size(); ++m) change[m] += change[m - 1];
  change.pop_back();
  for (std::uint32_t k = 0; k < instance.kernels.size(); ++k) {
    const Configuration& one = instance.kernels[k].configurations[solution.configurations[k]];
    if (one.workspace == pool) change[k + 1] += one.scratch;
  }
  return change;
}

bool is_within_capacities(const Instance& instance, const Solution& solution) {
  for (const Pool& pool : instance.pools()) {
    for (const Bytes bytes : occupancy(instance, solution, pool.tier)) {
      if (bytes > pool.capacity) return false;
    }
  }
  return true;
}

std::vector<TierId> places(const FlowGraph& graph, const std::vector<std::uint32_t>& path) {
  std::vector<TierId> tiers(graph.uses.size());
  for (const std::uint32_t index : path) {
    if (graph.edges[index].use != kNone) tiers[graph.edges[index].use] = graph.edges[index].tier;
  }
  return tiers;
}

std::uint32_t fastest(const KernelChoice& kernel, const std::vector<std::vector<TierId>>& tiers) {
  const auto satisfied = [&](std::uint32_t c) {
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      if (tiers[kernel.operands[i].tensor][kernel.operands[i].use] > kernel.tier(c, i)) return false;
    }
    return true;
  };
  std::uint32_t best = kNone;
  for (std::uint32_t c = 0; c < kernel.configurations.size(); ++c) {
    const Configuration& one = kernel.configurations[c];
    if (!satisfied(c)) continue;
    if (best == kNone) best = c;
    const Configuration& other = kernel.configurations[best];
    if (std::tie(one.time, one.scratch) < std::tie(other.time, other.scratch)) best = c;
  }
  check(best != kNone, "a placement satisfies the configuration that asks for least");
  return best;
}

}  // namespace terrace::autotm

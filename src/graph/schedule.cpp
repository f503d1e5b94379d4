// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "graph/dependences.hpp"
#include "graph/occupancy.hpp"
#include "graph/passes.hpp"

namespace terrace {
namespace {

using Order = std::vector<std::uint32_t>;

Order as_given(std::size_t kernels) {
  Order order(kernels);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// The given order with each update directly behind the last kernel it waits for.
Order with_early_updates(const Graph& graph, const Dependences& dependences) {
  Order behind = as_given(graph.kernels.size());
  std::vector<Order> followers(graph.kernels.size());
  for (std::uint32_t k = 0; k < behind.size(); ++k) {
    const auto& before = dependences.before(k);
    if (graph.kernels[k].phase == Phase::update && !before.empty()) {
      behind[k] = 0;
      for (const std::uint32_t earlier : before) behind[k] = std::max(behind[k], behind[earlier]);
    }
    followers[behind[k]].push_back(k);
  }
  Order order;
  for (const Order& group : followers) order.insert(order.end(), group.begin(), group.end());
  return order;
}

/// Always the kernel that leaves fewest bytes live, of all that may run; of equal ones the first given.
Order greedy(const Dependences& dependences, const MemoryUse& use) {
  using Entry = std::pair<std::int64_t, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  Occupancy occupancy(use);
  std::vector<std::size_t> waits(dependences.size());
  std::vector<bool> done(dependences.size());
  const auto push = [&](std::uint32_t kernel) { ready.push({occupancy.change(kernel), kernel}); };
  for (std::uint32_t k = 0; k < waits.size(); ++k) {
    waits[k] = dependences.before(k).size();
    if (waits[k] == 0) push(k);
  }
  Order order;
  while (order.size() < dependences.size()) {
    const std::uint32_t kernel = ready.top().second;
    ready.pop();
    // Changes only become less, and the lesser entry came out first.
    if (done[kernel]) continue;
    done[kernel] = true;
    order.push_back(kernel);
    occupancy.run(kernel);
    for (const std::uint32_t other : occupancy.touched()) {
      if (waits[other] == 0) push(other);
    }
    for (const std::uint32_t later : dependences.after(kernel)) {
      if (--waits[later] == 0) push(later);
    }
  }
  return order;
}

Order greedy_from_the_end(const Dependences& dependences, const MemoryUse& use) {
  Order order = greedy(dependences.reversed(), use.reversed());
  std::reverse(order.begin(), order.end());
  const auto last = static_cast<std::uint32_t>(order.size()) - 1;
  for (std::uint32_t& kernel : order) kernel = last - kernel;
  return order;
}

/// Greedy too, but kernels of one phase stay in the given order: only which phase goes on is chosen.
Order merged_phases(const Graph& graph, const Dependences& dependences, const MemoryUse& use) {
  std::array<Order, 3> phases;
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    phases[static_cast<std::size_t>(graph.kernels[k].phase)].push_back(k);
  }
  std::array<std::size_t, 3> next{};
  Occupancy occupancy(use);
  std::vector<bool> done(dependences.size());
  const auto may_run = [&](std::uint32_t kernel) {
    const auto& before = dependences.before(kernel);
    return std::all_of(before.begin(), before.end(), [&](std::uint32_t earlier) { return done[earlier]; });
  };
  Order order;
  while (order.size() < dependences.size()) {
    std::pair<std::int64_t, std::uint32_t> best{};
    std::optional<std::size_t> chosen;
    for (std::size_t phase = 0; phase < phases.size(); ++phase) {
      if (next[phase] == phases[phase].size()) continue;
      const std::uint32_t head = phases[phase][next[phase]];
      const std::pair candidate{occupancy.change(head), head};
      if (!may_run(head) || (chosen && best < candidate)) continue;
      best = candidate;
      chosen = phase;
    }
    // The first kernel of all that are left can always run, and is the head of its phase.
    ++next[*chosen];
    done[best.second] = true;
    order.push_back(best.second);
    occupancy.run(best.second);
  }
  return order;
}

std::int64_t peak_of(const Order& order, const MemoryUse& use) {
  Occupancy occupancy(use);
  for (const std::uint32_t kernel : order) occupancy.run(kernel);
  return occupancy.peak_bytes();
}

}  // namespace

Graph schedule(Graph graph) {
  if (graph.kernels.empty()) return graph;
  const Dependences dependences(graph);
  const MemoryUse use(graph);
  Order best = as_given(graph.kernels.size());
  std::int64_t peak = peak_of(best, use);
  const auto consider = [&](Order order) {
    const std::int64_t its = peak_of(order, use);
    if (its >= peak) return;
    peak = its;
    best = std::move(order);
  };
  consider(with_early_updates(graph, dependences));
  consider(greedy(dependences, use));
  consider(merged_phases(graph, dependences, use));
  consider(greedy_from_the_end(dependences, use));
  std::vector<Kernel> kernels;
  for (const std::uint32_t kernel : best) kernels.push_back(std::move(graph.kernels[kernel]));
  graph.kernels = std::move(kernels);
  return graph;
}

}  // namespace terrace

#include "plan/reach.hpp"

#include <algorithm>

#include "plan/region_size.hpp"

namespace terrace {

std::vector<Bytes> reach(const Graph& graph, const Machine& machine, const Plan& plan) {
  std::vector<Bytes> reached(plan.budget.size());
  const auto add = [&](const Alloc& region) {
    const Bytes size = region_size(graph[region.tensor], machine[region.tier]);
    Bytes& end = reached[region.tier.index];
    end = std::max(end, Bytes{region.offset} + size);
  };
  for (const Alloc& region : plan.start) add(region);
  for (const Instruction& instruction : plan.instructions) {
    if (const auto* region = std::get_if<Alloc>(&instruction)) add(*region);
  }
  return reached;
}

void trim_budget(const Graph& graph, const Machine& machine, Plan& plan) {
  const std::vector<Bytes> reached = reach(graph, machine, plan);
  for (std::size_t i = 0; i < reached.size(); ++i) plan.budget[i] = std::min(plan.budget[i], reached[i]);
}

}  // namespace terrace

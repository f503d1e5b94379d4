// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "planners/autotm/model/program.hpp"

namespace terrace::autotm {
namespace {

/// Returns whether some path of the tensor takes no memory of this pool at this moment.
bool can_avoid(const FlowGraph& graph, TierId pool, std::uint32_t moment) {
  std::vector<bool> reached(graph.nodes), left(graph.nodes);
  reached[0] = true;
  for (const Edge& edge : graph.edges) {
    left[edge.from] = true;
    if (reached[edge.from] && !edge.occupies(pool, moment)) reached[edge.to] = true;
  }
  for (std::uint32_t node = 0; node < graph.nodes; ++node) {
    if (reached[node] && !left[node]) return true;
  }
  return false;
}

Bytes least_scratch(const KernelChoice& kernel, TierId pool) {
  Bytes least{~std::uint64_t{0}};
  for (const Configuration& one : kernel.configurations)
    least = std::min(least, one.workspace == pool ? one.scratch : Bytes{});
  return least;
}

struct Need {
  std::uint32_t moment = 0;
  Bytes bytes;
};

/// Returns the moment at which most bytes cannot be elsewhere.
Need worst_of(const Instance& instance, TierId pool) {
  Need worst;
  for (std::uint32_t m = 0; m < instance.moments(); ++m) {
    const bool is_kernel = m > 0 && m + 1 < instance.moments();
    Bytes bound_there = is_kernel ? least_scratch(instance.kernels[m - 1], pool) : Bytes{};
    for (const FlowGraph& graph : instance.tensors) {
      if (!can_avoid(graph, pool, m)) bound_there += graph.size;
    }
    if (bound_there > worst.bytes) worst = {m, bound_there};
  }
  return worst;
}

}  // namespace

Error explain_infeasible(const PlanRequest& request, const Instance& instance) {
  for (const Pool& pool : instance.pools()) {
    const Need worst = worst_of(instance, pool.tier);
    if (worst.bytes <= pool.capacity) continue;
    const std::string when = worst.moment == 0 ? "the step's start"
                             : worst.moment + 1 == instance.moments()
                                 ? "the step's end"
                                 : request.graph.kernels[worst.moment - 1].name;
    const std::string memory = pool.tier == TierId{0} ? "fast memory" : request.machine[pool.tier].name;
    const char* advice =
        instance.formulation == Formulation::fixed ? ", a planner that moves tensors may do" : "";
    return {ErrorCode::too_large, fmt::format("{} needs {} of {} at once and {} is given: {} are missing{}",
                                              when, readable(worst.bytes), memory, readable(pool.capacity),
                                              readable(worst.bytes - pool.capacity), advice)};
  }
  return {ErrorCode::too_large,
          fmt::format("no placement fits in {} of fast memory: give it more", readable(instance.capacity))};
}

}  // namespace terrace::autotm

#include <fmt/format.h>

#include <algorithm>

#include "planners/autotm/program.hpp"

namespace terrace::autotm {
namespace {

/// Whether some path of the tensor is not in fast memory at this moment.
bool can_avoid(const FlowGraph& graph, std::uint32_t moment) {
  std::vector<bool> reached(graph.nodes), left(graph.nodes);
  reached[0] = true;
  for (const Edge& edge : graph.edges) {
    left[edge.from] = true;
    if (reached[edge.from] && !edge.occupies(moment)) reached[edge.to] = true;
  }
  for (std::uint32_t node = 0; node < graph.nodes; ++node) {
    if (reached[node] && !left[node]) return true;
  }
  return false;
}

Bytes least_scratch(const KernelChoice& kernel) {
  Bytes least{~std::uint64_t{0}};
  for (const Configuration& one : kernel.configurations) least = std::min(least, one.scratch);
  return least;
}

}  // namespace

Error explain_infeasible(const PlanRequest& request, const Instance& instance) {
  std::uint32_t worst = 0;
  Bytes most{};
  for (std::uint32_t m = 0; m < instance.moments(); ++m) {
    const bool is_kernel = m > 0 && m + 1 < instance.moments();
    Bytes bound_there = is_kernel ? least_scratch(instance.kernels[m - 1]) : Bytes{};
    for (const FlowGraph& graph : instance.tensors) {
      if (!can_avoid(graph, m)) bound_there += graph.size;
    }
    if (bound_there <= most) continue;
    most = bound_there;
    worst = m;
  }
  if (most <= instance.capacity) {
    return {ErrorCode::too_large,
            fmt::format("no placement fits in {} of fast memory: give it more", readable(instance.capacity))};
  }
  const std::string when = worst == 0                        ? "the step's start"
                           : worst + 1 == instance.moments() ? "the step's end"
                                                             : request.graph.kernels[worst - 1].name;
  const char* advice =
      instance.formulation == Formulation::fixed ? ", a planner that moves tensors may do" : "";
  return {
      ErrorCode::too_large,
      fmt::format("{} needs {} of fast memory at once and {} is given: {} are missing{}", when,
                  readable(most), readable(instance.capacity), readable(most - instance.capacity), advice)};
}

}  // namespace terrace::autotm

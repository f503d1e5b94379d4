// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "graph/layer_steps.hpp"
#include "planners/baselines/swap_schedule.hpp"
#include "planners/baselines/swapping.hpp"

namespace terrace {
namespace {

/// The first kernel of each kernel's layer step.
std::vector<std::uint32_t> first_of_layer(const Graph& graph) {
  std::vector<std::uint32_t> first(graph.kernels.size());
  std::uint32_t begin = 0;
  for (std::uint32_t k = 0; k < first.size(); ++k) {
    first[k] = begin;
    if (ends_layer_step(graph, k)) begin = k + 1;
  }
  return first;
}

/// What a layer uses comes when the layer begins, which waits for it, and leaves when the layer is over.
std::vector<Movement> movements_of(const PlanRequest& request, const StepUses& uses) {
  const std::vector<std::uint32_t> first = first_of_layer(request.graph);
  std::vector<Movement> movements;
  for (const Absence& absence : absences(request, uses)) {
    const bool lasting = request.graph[absence.tensor].persistent;
    for (const Stretch& stretch : absence.out) {
      Movement moves = on_demand(absence, stretch);
      if (stretch.until < uses.kernels()) moves.back = std::max(moves.gone, first[stretch.until]);
      // Within a layer nothing leaves; of what outlives the step, all stretches move or none.
      const bool within = stretch.after != kNever && stretch.until < uses.kernels() &&
                          first[stretch.after] == first[stretch.until];
      if (within) moves.back = moves.gone;
      if (!within || lasting) movements.push_back(moves);
    }
  }
  return movements;
}

}  // namespace

Result<Plan> plan_l2l(const PlanRequest& request) {
  const StepUses uses(request.graph);
  const std::vector<Movement> movements = movements_of(request, uses);
  return plan_swapped(request, uses, "l2l",
                      [&](Bytes) { return write_movements(request, uses, movements, "l2l"); });
}

}  // namespace terrace

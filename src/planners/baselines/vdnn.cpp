// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "graph/layer_steps.hpp"
#include "migration/fit.hpp"
#include "planners/baselines/swap_schedule.hpp"
#include "planners/baselines/swapping.hpp"

namespace terrace {
namespace {

bool convolves(const Kernel& kernel) {
  return kernel.operation == "conv2d" || kernel.operation == "conv_transpose2d";
}

/// Returns by tensor whether a convolution of the forward pass reads it as its image.
std::vector<bool> convolved(const Graph& graph) {
  std::vector<bool> is(graph.tensors.size());
  for (const Kernel& kernel : graph.kernels) {
    if (convolves(kernel) && kernel.phase == Phase::forward) is[kernel.inputs[0].tensor.index] = true;
  }
  return is;
}

/// Returns the first kernel of the layer that is executed before the layer of `kernel`.
std::uint32_t one_layer_ahead(const Graph& graph, std::uint32_t kernel) {
  for (int layers = 0; kernel > 0; --kernel) {
    if (ends_layer_step(graph, kernel - 1) && ++layers == 2) break;
  }
  return kernel;
}

bool writes(const Kernel& kernel, TensorId tensor) {
  return std::any_of(kernel.outputs.begin(), kernel.outputs.end(),
                     [&](const Operand& output) { return output.tensor == tensor; });
}

std::vector<Movement> movements_of(const PlanRequest& request, const StepUses& uses) {
  const Graph& graph = request.graph;
  const std::vector<bool> leaves = convolved(graph);
  std::vector<Movement> movements;
  for (const Absence& absence : absences(request, uses)) {
    const Stretch& stretch = absence.out[0];
    if (!leaves[absence.tensor.index] || graph[absence.tensor].persistent) continue;
    if (graph.kernels[stretch.after].phase != Phase::forward) continue;
    if (graph.kernels[stretch.until].phase == Phase::forward) continue;
    Movement moves = on_demand(absence, stretch);
    // The transfer overlaps with the tensor's last reader of the forward pass.
    if (!writes(graph.kernels[stretch.after], absence.tensor)) moves.leave = stretch.after;
    moves.back = std::max(moves.gone, one_layer_ahead(graph, stretch.until));
    movements.push_back(moves);
  }
  return movements;
}

}  // namespace

Result<Plan> plan_vdnn(const PlanRequest& request) {
  const StepUses uses(request.graph);
  auto draft = write_movements(request, uses, {}, "vdnn");
  if (draft && draft->needed[0] <= request.budget[0]) return fitted(request, *std::move(draft));
  draft = write_movements(request, uses, movements_of(request, uses), "vdnn");
  if (!draft) return draft.error();
  if (draft->needed[0] <= request.budget[0]) return fitted(request, *std::move(draft));
  return Error{ErrorCode::too_large,
               fmt::format("without what convolutions read {} of fast memory are needed and {} is given: {} "
                           "are missing; take another planner",
                           readable(draft->needed[0]), readable(request.budget[0]),
                           readable(draft->needed[0] - request.budget[0]))};
}

}  // namespace terrace

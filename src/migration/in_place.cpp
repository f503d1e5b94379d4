#include "migration/in_place.hpp"

namespace terrace {

Draft write_in_place(const PlanRequest& request, const StepUses& uses, TierId tier, std::string planner) {
  const Graph& graph = request.graph;
  PlanWriter writer(request, std::move(planner));
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].persistent || is_given(graph.tensors[i])) writer.start({i}, tier);
  }
  for (std::uint32_t k = 0; k < uses.kernels(); ++k) {
    for (const Use& use : uses.of(k)) {
      if (!writer.has(use.tensor, tier)) writer.alloc(use.tensor, tier);
    }
    writer.run({k}, tier);
    for (const Use& use : uses.of(k)) {
      if (use.next == kNever && !graph[use.tensor].persistent) writer.free(use.tensor, tier);
    }
  }
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (is_given(graph.tensors[i]) && !writer.has({i}, tier)) writer.restore({i}, tier);
  }
  return writer.finish();
}

}  // namespace terrace

#include "exec/packed_plan.hpp"

#include <algorithm>

#include "terrace/lifetimes.hpp"

namespace terrace {
namespace {

constexpr TierId kMemory{0};

/// Whether the tensor is there before the first kernel runs, because it is filled or kept between steps.
bool is_there_first(const Tensor& tensor) { return tensor.persistent || tensor.kind == TensorKind::input; }

Run run_in_memory(const Graph& graph, KernelId id) {
  const Kernel& kernel = graph[id];
  const std::size_t operands = kernel.inputs.size() + kernel.outputs.size() + (kernel.workspace ? 1 : 0);
  return {id, 0, std::vector<TierId>(operands, kMemory)};
}

bool is_result(const Graph& graph, TensorId id) {
  return std::find(graph.results.begin(), graph.results.end(), id) != graph.results.end();
}

}  // namespace

Machine one_memory(const Program& program) {
  Machine machine;
  machine.name = "memory";
  machine.tiers.resize(1);
  machine.tiers[0].name = "dram";
  machine.tiers[0].granularity = program.alignment;
  machine.tiers[0].capacity = std::max(program.arena, Bytes{1});
  machine.tiers[0].spec = "dram:" + to_string(machine.tiers[0].capacity);
  return machine;
}

Plan packed_plan(const Program& program) {
  const Graph& graph = program.graph;
  const Lifetimes lifetimes(graph);
  std::vector<std::vector<TensorId>> first(graph.kernels.size()), last(graph.kernels.size());
  Plan plan;
  plan.budget = {std::max(program.arena, Bytes{1})};
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (is_there_first(tensor)) plan.start.push_back({{i}, kMemory, program.offsets[i]});
    const Lifetime& lifetime = lifetimes[{i}];
    if (!lifetime.used || tensor.persistent) continue;
    if (!is_there_first(tensor)) first[lifetime.first].push_back({i});
    if (!is_result(graph, {i})) last[lifetime.last].push_back({i});
  }
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    for (const TensorId id : first[k])
      plan.instructions.push_back(Alloc{id, kMemory, program.offsets[id.index]});
    plan.instructions.push_back(run_in_memory(graph, {k}));
    for (const TensorId id : last[k]) plan.instructions.push_back(Free{id, kMemory});
  }
  return plan;
}

}  // namespace terrace

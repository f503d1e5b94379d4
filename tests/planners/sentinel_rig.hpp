// SPDX-License-Identifier: Apache-2.0
// Small steps in layers, for what Sentinel decides.
#pragma once

#include "planners/baseline_rig.hpp"
#include "planners/sentinel/choice.hpp"
#include "planners/sentinel/sentinel.hpp"

namespace terrace {

/// Kernels of one second each; a kernel opens a layer unless it is said to join the one before.
class LayerGraph : public RigGraph {
 public:
  void layer(const std::string& name, const std::vector<TensorId>& reads, const std::vector<TensorId>& writes,
             Phase phase = Phase::forward, double seconds = 1) {
    kernel(name, reads, writes, phase, seconds);
  }
  void join(const std::string& name, const std::vector<TensorId>& reads,
            const std::vector<TensorId>& writes) {
    const Kernel before = graph.kernels.back();
    kernel(name, reads, writes, before.phase, 1);
    graph.kernels.back().layer = before.layer;
  }
  TensorId made(const std::string& name, std::uint64_t bytes) {
    return tensor(name, bytes, TensorKind::activation);
  }
  TensorId kept(const std::string& name, std::uint64_t bytes) {
    return tensor(name, bytes, TensorKind::weight, true);
  }
};

inline PlanRequest with(PlanRequest request, const std::string& option, const std::string& value) {
  request.options[option] = value;
  return request;
}

/// How many copies a plan makes from this tier.
inline std::size_t copies(const Plan& plan, TierId from) {
  std::size_t count = 0;
  for (const Instruction& instruction : plan.instructions) {
    const auto* copy = std::get_if<Copy>(&instruction);
    count += copy != nullptr && copy->from == from ? 1 : 0;
  }
  return count;
}

/// Names of the tensors that some kernel uses in a slower tier.
inline std::set<std::string> used_in_place(const Planned& planned, const Plan& plan) {
  std::set<std::string> names;
  for (const Instruction& instruction : plan.instructions) {
    const auto* run = std::get_if<Run>(&instruction);
    if (run == nullptr) continue;
    const Kernel& kernel = planned.graph[run->kernel];
    std::vector<TensorId> operands;
    for (const Operand& operand : kernel.inputs) operands.push_back(operand.tensor);
    for (const Operand& operand : kernel.outputs) operands.push_back(operand.tensor);
    if (kernel.workspace) operands.push_back(kernel.workspace);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (run->tiers[i] != TierId{0}) names.insert(planned.graph[operands[i]].name);
    }
  }
  return names;
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "planners/offload/offload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/similar.hpp"
#include "migration/repack.hpp"
#include "migration/spread.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

Result<EngineId> further_engine(std::string_view name, const Machine& machine) {
  std::vector<std::string_view> names;
  for (std::uint32_t i = 1; i < machine.engine_count(); ++i) {
    names.push_back(machine.compute_of({i}).name);
    if (names.back() == name) return EngineId{i};
  }
  return Error{ErrorCode::invalid_argument,
               names.empty()
                   ? fmt::format("updates are to run on '{}', and machine {} has one engine: describe "
                                 "another under its key 'engines'",
                                 name, machine.name)
                   : fmt::format("machine {} has no further engine '{}': take {}", machine.name, name,
                                 enumerated(names, "or"))};
}

using ByKernel = std::vector<bool>;

ByKernel updates_of(const Graph& graph) {
  ByKernel chosen(graph.kernels.size());
  for (std::size_t k = 0; k < chosen.size(); ++k) chosen[k] = graph.kernels[k].phase == Phase::update;
  return chosen;
}

/// Adds the kernels of the backward pass whose results nobody but chosen kernels uses: gradients of weights,
/// for which the next layer's backward pass need not wait.
ByKernel with_gradients(const Graph& graph, ByKernel chosen) {
  std::vector<std::vector<std::size_t>> users(graph.tensors.size());  // the kernels that use each tensor
  for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
    for (const auto* side : {&graph.kernels[k].inputs, &graph.kernels[k].outputs}) {
      for (const Operand& operand : *side) users[operand.tensor.index].push_back(k);
    }
  }
  std::vector<bool> outlives(graph.tensors.size());  // whether a tensor is needed after the step
  for (std::size_t i = 0; i < outlives.size(); ++i) outlives[i] = graph.tensors[i].persistent;
  for (const TensorId result : graph.results) outlives[result.index] = true;
  for (std::size_t k = graph.kernels.size(); k-- > 0;) {
    const auto is_for_chosen = [&](const Operand& output) {
      const auto& all = users[output.tensor.index];
      return !outlives[output.tensor.index] &&
             std::all_of(all.begin(), all.end(), [&](std::size_t user) { return user == k || chosen[user]; });
    };
    const auto& outputs = graph.kernels[k].outputs;
    if (graph.kernels[k].phase == Phase::backward &&
        std::all_of(outputs.begin(), outputs.end(), is_for_chosen))
      chosen[k] = true;
  }
  return chosen;
}

/// Of the chosen kernels, those whose operands the engine reaches wherever the plan runs them.
ByKernel within_reach(const PlanRequest& request, const Plan& plan, EngineId engine, ByKernel can) {
  for (const Instruction& one : plan.instructions) {
    const auto* run = std::get_if<Run>(&one);
    if (run == nullptr) continue;
    const bool reached = std::all_of(run->tiers.begin(), run->tiers.end(),
                                     [&](TierId tier) { return request.machine.reaches(engine, tier); });
    if (!reached) can[run->kernel.index] = false;
  }
  return can;
}

/// The fastest plan so far, by the simulator.
class Fastest {
 public:
  explicit Fastest(const PlanRequest& request)
      : request_(request), clock_(request.graph, request.machine, request.profile) {}

  void consider(Plan plan) {
    for (std::size_t tier = 0; tier < plan.budget.size(); ++tier) {
      if (plan.budget[tier] > request_.budget[tier]) return;
    }
    if (!violations(request_.graph, request_.machine, plan, 1).empty()) return;
    const Seconds step = simulate(request_.graph, request_.machine, clock_, plan).step;
    if (best_ && step >= step_) return;
    step_ = step;
    best_ = std::move(plan);
  }
  Plan take(Plan otherwise) && { return best_ ? *std::move(best_) : std::move(otherwise); }

 private:
  const PlanRequest& request_;
  KernelClock clock_;
  Seconds step_{0};
  std::optional<Plan> best_;
};

}  // namespace

Result<Plan> with_updates_on(std::string_view engine_name, const PlanRequest& request, const Plan& plan) {
  constexpr std::uint32_t kDelays[] = {1, 2, 4, 8, 16, 32};  // kernels
  const auto engine = further_engine(engine_name, request.machine);
  if (!engine) return engine.error();
  Fastest fastest(request);
  fastest.consider(plan);
  const ByKernel updates = updates_of(request.graph);
  for (const ByKernel& chosen : {updates, with_gradients(request.graph, updates)}) {
    const ByKernel moves = within_reach(request, plan, *engine, chosen);
    const auto engine_of = [&](KernelId kernel) { return moves[kernel.index] ? *engine : EngineId{}; };
    const auto is_moved = [&](KernelId kernel) { return static_cast<bool>(moves[kernel.index]); };
    fastest.consider(spread(request.graph, request.machine, plan, engine_of));
    for (const std::uint32_t delay : kDelays) {
      Plan later = with_offsets(request, with_late_frees(request.graph, plan, is_moved, delay));
      fastest.consider(spread(request.graph, request.machine, std::move(later), engine_of));
    }
  }
  return std::move(fastest).take(plan);
}

}  // namespace terrace

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

/// By kernel: whether it is an update whose operands the engine reaches wherever the plan runs it.
std::vector<bool> movable(const PlanRequest& request, const Plan& plan, EngineId engine) {
  std::vector<bool> can(request.graph.kernels.size());
  for (std::size_t k = 0; k < can.size(); ++k) can[k] = request.graph.kernels[k].phase == Phase::update;
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
  const std::vector<bool> moves = movable(request, plan, *engine);
  const auto engine_of = [&](KernelId kernel) { return moves[kernel.index] ? *engine : EngineId{}; };
  const auto is_moved = [&](KernelId kernel) { return static_cast<bool>(moves[kernel.index]); };
  Fastest fastest(request);
  fastest.consider(plan);
  fastest.consider(spread(request.graph, request.machine, plan, engine_of));
  for (const std::uint32_t delay : kDelays) {
    Plan later = with_offsets(request, with_late_frees(request.graph, plan, is_moved, delay));
    fastest.consider(spread(request.graph, request.machine, std::move(later), engine_of));
  }
  return std::move(fastest).take(plan);
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "planners/baselines/prefetch.hpp"

#include <algorithm>

#include "migration/fit.hpp"
#include "planners/baselines/prefetch_writer.hpp"
#include "terrace/simulate.hpp"

namespace terrace {
namespace {

/// Shares of fast memory that tensors between two uses may not take, so that transfers find room. Which share
/// is best depends on how transfers and kernels overlap, so all are tried; for a large graph, the middle ones
/// only.
constexpr double kReserves[] = {0.08, 0.2, 0.0, 0.35, 0.5};
constexpr std::size_t kLargeGraph = 3000;

}  // namespace

Result<Plan> plan_prefetch(const PlanRequest& request) {
  const StepUses uses(request.graph);
  const KernelClock clock(request.graph, request.machine, request.profile);
  const bool large = request.graph.kernels.size() > kLargeGraph;
  const PackingEffort effort = large ? PackingEffort{0} : kPlanEffort;
  Result<Plan> best = Error{ErrorCode::too_large, {}};
  Seconds least{};
  for (const double reserve : std::span(kReserves).first(large ? 2 : std::size(kReserves))) {
    auto plan = plan_to_fit(request, uses, "prefetch", [&](Bytes capacity) -> Result<Draft> {
      const auto kept = static_cast<std::uint64_t>((1 - reserve) * static_cast<double>(capacity.count));
      auto residency = decide_residency(request, uses, {kept}, farthest_next_use);
      // Where one kernel needs nearly all of fast memory, no share of it can be kept free.
      if (!residency) residency = decide_residency(request, uses, capacity, farthest_next_use);
      if (!residency) return residency.error();
      return PrefetchWriter(request, clock, uses, *residency, capacity).write(effort);
    });
    if (!plan) {
      if (!best) best = plan.error();
      continue;
    }
    const Seconds step = simulate(request.graph, request.machine, request.profile, *plan).step;
    if (best && step >= least) continue;
    least = step;
    best = std::move(plan);
  }
  return best;
}

}  // namespace terrace

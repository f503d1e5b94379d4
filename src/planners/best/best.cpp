#include "planners/best/best.hpp"

#include <optional>

#include "planners/baselines/prefetch.hpp"
#include "planners/baselines/swapping.hpp"
#include "planners/sentinel/sentinel.hpp"
#include "terrace/simulate.hpp"

namespace terrace {
namespace {

struct Candidate {
  Plan plan;
  Seconds step;
};

}  // namespace

Result<Plan> plan_best(const PlanRequest& request) {
  PlanRequest plain{request.graph, request.machine, request.profile, request.budget, request.seed};
  const KernelClock clock(request.graph, request.machine, request.profile);
  std::optional<Candidate> best;
  std::optional<Error> reason;
  // Each is the fastest of them for some graph, machine and budget; all plan within a second or so.
  for (auto* planner : {plan_prefetch, plan_sentinel, plan_capuchin}) {
    auto plan = planner(plain);
    if (!plan) {
      if (!reason) reason = plan.error();
      continue;
    }
    const Seconds step = simulate(request.graph, request.machine, clock, *plan).step;
    if (!best || step < best->step) best = Candidate{*std::move(plan), step};
  }
  if (!best) return *reason;
  return std::move(best->plan);
}

}  // namespace terrace

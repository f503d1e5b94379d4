#include "planners/baselines/demand.hpp"

#include <fmt/format.h>

#include "migration/demand_writer.hpp"
#include "migration/fit.hpp"
#include "migration/in_place.hpp"

namespace terrace {
namespace {

Result<Plan> plan_on_demand(const PlanRequest& request, const VictimRule& rule, const std::string& name) {
  const StepUses uses(request.graph);
  return plan_to_fit(request, uses, name, [&](Bytes capacity) -> Result<Draft> {
    const auto residency = decide_residency(request, uses, capacity, rule);
    if (!residency) return residency.error();
    return write_on_demand(request, uses, *residency, name);
  });
}

}  // namespace

Result<Plan> plan_all_fast(const PlanRequest& request) {
  Draft draft = write_in_place(request, StepUses(request.graph), {0}, "all-fast");
  if (draft.needed[0] > request.budget[0]) {
    return Error{ErrorCode::too_large,
                 fmt::format("everything in fast memory takes {} and {} is given: take another planner",
                             readable(draft.needed[0]), readable(request.budget[0]))};
  }
  return fitted(request, std::move(draft));
}

Result<Plan> plan_lru(const PlanRequest& request) {
  return plan_on_demand(request, least_recently_used, "lru");
}

Result<Plan> plan_next_use(const PlanRequest& request) {
  return plan_on_demand(request, farthest_next_use, "next-use");
}

}  // namespace terrace

#include "migration/fit.hpp"

#include <fmt/format.h>

#include "migration/demand_writer.hpp"
#include "migration/in_place.hpp"

namespace terrace {
namespace {

constexpr int kAttempts = 8;

Result<Plan> last_resort(const PlanRequest& request, const StepUses& uses, const std::string& planner) {
  auto apart = write_on_demand(request, uses, nothing_stays(request, uses), planner);
  Result<Plan> plan = apart ? fitted(request, *std::move(apart)) : apart.error();
  for (std::uint32_t tier = 1; !plan && tier < request.machine.tiers.size(); ++tier) {
    if (!request.machine.tiers[tier].addressable) continue;
    auto in_place = fitted(request, write_in_place(request, uses, {tier}, planner));
    if (in_place) return in_place;
  }
  return plan;
}

}  // namespace

Result<Plan> fitted(const PlanRequest& request, Draft draft) {
  for (std::size_t tier = 0; tier < draft.needed.size(); ++tier) {
    if (draft.needed[tier] <= request.budget[tier]) continue;
    return Error{ErrorCode::too_large,
                 fmt::format("tier {} is too small: the plan needs {} there and {} is given",
                             request.machine.tiers[tier].name, readable(draft.needed[tier]),
                             readable(request.budget[tier]))};
  }
  draft.plan.budget = draft.needed;
  return std::move(draft.plan);
}

Result<Plan> plan_to_fit(const PlanRequest& request, const StepUses& uses, const std::string& planner,
                         const std::function<Result<Draft>(Bytes capacity)>& draft) {
  Bytes capacity = request.budget[0];
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto made = draft(capacity);
    if (!made) break;
    const Bytes needed = made->needed[0];
    if (needed <= request.budget[0]) return fitted(request, *std::move(made));
    if (needed - request.budget[0] >= capacity) break;
    capacity -= needed - request.budget[0];
  }
  return last_resort(request, uses, planner);
}

}  // namespace terrace

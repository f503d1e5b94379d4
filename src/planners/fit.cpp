#include "planners/fit.hpp"

#include <fmt/format.h>

#include "planners/demand_writer.hpp"

namespace terrace {
namespace {

constexpr int kAttempts = 8;

/// The plan, if all tiers hold it; else the first that does not.
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

}  // namespace

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
  auto last = write_on_demand(request, uses, nothing_stays(request, uses), planner);
  if (!last) return last.error();
  return fitted(request, *std::move(last));
}

}  // namespace terrace

#include "planners/fit.hpp"

#include <fmt/format.h>

namespace terrace {

Result<Plan> plan_to_fit(const PlanRequest& request,
                         const std::function<Result<Draft>(Bytes capacity)>& draft) {
  Bytes capacity = request.budget[0];
  for (;;) {
    auto made = draft(capacity);
    if (!made) return made.error();
    for (std::size_t tier = 1; tier < made->needed.size(); ++tier) {
      if (made->needed[tier] <= request.budget[tier]) continue;
      return Error{ErrorCode::too_large,
                   fmt::format("tier {} is too small: the plan needs {} there and {} is given",
                               request.machine.tiers[tier].name, readable(made->needed[tier]),
                               readable(request.budget[tier]))};
    }
    if (made->needed[0] <= request.budget[0]) return std::move(made->plan);
    // At least one granule less, else by what was too much.
    const Bytes excess = made->needed[0] - request.budget[0];
    if (excess >= capacity) {
      return Error{ErrorCode::too_large, fmt::format("{} of fast memory are too fragmented for this planner",
                                                     readable(request.budget[0]))};
    }
    capacity -= excess;
  }
}

}  // namespace terrace

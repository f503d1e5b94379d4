// Plans again with less until the packed regions fit the budget.
#pragma once

#include <functional>
#include <string>

#include "planners/plan_writer.hpp"
#include "planners/residency.hpp"

namespace terrace {

/// `draft` plans for a capacity of tier 0; packing may need more than the bytes live at once. Where nothing
/// that `draft` makes fits, nothing stays in fast memory between two kernels: that fits wherever any plan
/// does. The plan's budget is what it needs. Fails where a slower tier or the last resort is too small.
Result<Plan> plan_to_fit(const PlanRequest& request, const StepUses& uses, const std::string& planner,
                         const std::function<Result<Draft>(Bytes capacity)>& draft);

}  // namespace terrace

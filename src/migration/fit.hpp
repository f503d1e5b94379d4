// Plans again with less until the packed regions fit the budget.
#pragma once

#include <functional>
#include <string>

#include "migration/plan_writer.hpp"
#include "migration/residency.hpp"

namespace terrace {

/// The plan with what it needs as its budget, if all tiers hold it; else names the first that does not.
Result<Plan> fitted(const PlanRequest& request, Draft draft);

/// `draft` plans for a capacity of tier 0; packing may need more than the bytes live at once. Where nothing
/// that `draft` makes fits, nothing stays in fast memory between two kernels; where one kernel alone is too
/// large, all live in a slower tier that kernels can use in place. One of these fits wherever any plan does,
/// as long as slower tiers are large enough.
Result<Plan> plan_to_fit(const PlanRequest& request, const StepUses& uses, const std::string& planner,
                         const std::function<Result<Draft>(Bytes capacity)>& draft);

}  // namespace terrace

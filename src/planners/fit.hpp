// Plans again with less until the packed regions fit the budget.
#pragma once

#include <functional>

#include "planners/plan_writer.hpp"

namespace terrace {

/// `draft` plans for a capacity of tier 0; packing may need more than the bytes live at once. Fails as
/// `draft` does, or where a slower tier is too small.
Result<Plan> plan_to_fit(const PlanRequest& request,
                         const std::function<Result<Draft>(Bytes capacity)>& draft);

}  // namespace terrace

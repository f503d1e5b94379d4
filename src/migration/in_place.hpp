// A plan in which all tensors live in one tier, where kernels use them in place.
#pragma once

#include <string>

#include "migration/plan_writer.hpp"
#include "plan/step_uses.hpp"

namespace terrace {

/// pre: the tier is addressable
Draft write_in_place(const PlanRequest& request, const StepUses& uses, TierId tier, std::string planner);

}  // namespace terrace

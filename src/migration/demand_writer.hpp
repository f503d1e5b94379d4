// Writes a residency as a plan in which every transfer is waited for at once.
#pragma once

#include <string>

#include "migration/plan_writer.hpp"
#include "migration/residency.hpp"

namespace terrace {

/// Fails where the slower tiers are full.
Result<Draft> write_on_demand(const PlanRequest& request, const StepUses& uses, const Residency& residency,
                              std::string planner);

}  // namespace terrace

// Next-use with movement in the background: a tensor leaves as soon as its last use before an eviction is
// over, and comes back as early as memory allows, the next needed first.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

Result<Plan> plan_prefetch(const PlanRequest& request);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Records a policy of the manager as a plan: the graph's step is run against a manager that has the policy
// and no memory (rehearsed_step.hpp).
#pragma once

#include <string>
#include <string_view>

#include "planners/baselines/rehearsed_step.hpp"

namespace terrace {

/// The third step or a later one: two let the policy settle where it keeps what outlives a step. A tensor
/// that leaves such a home and does not come back to the same place is given one in the next slower tier,
/// where a copy of it can stay, and the step is run again. `policy`: as make_policy() knows it. Fails where
/// the policy finds no room. The manager has tier 0 and every slower one that is linked both ways with those
/// before it, for it moves between any two.
Result<Recording> record_policy(const PlanRequest& request, const StepUses& uses, std::string_view policy,
                                const std::string& planner);

}  // namespace terrace

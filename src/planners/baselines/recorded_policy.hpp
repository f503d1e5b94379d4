// SPDX-License-Identifier: Apache-2.0
// Records a policy of the manager as a plan: the graph's step is run against a manager that has the policy
// and no memory (rehearsed_step.hpp).
#pragma once

#include <string>
#include <string_view>

#include "planners/baselines/rehearsed_step.hpp"

namespace terrace {

/// Records the third step or a later one: in the first two the policy settles where tensors that outlive a
/// step lie between steps (their start tiers). A tensor that leaves its start tier and does not return to it
/// gets the next slower one, where a copy of it can stay, and the step is run again. `policy` is a name that
/// make_policy() knows. Fails where the policy finds no room. The manager moves tensors between any two of
/// its tiers, so it has tier 0 and every slower tier that is linked both ways with all those before it.
Result<Recording> record_policy(const PlanRequest& request, const StepUses& uses, std::string_view policy,
                                const std::string& planner);

}  // namespace terrace

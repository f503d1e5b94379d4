// SPDX-License-Identifier: Apache-2.0
// Online correction (004 section V): what an executed step measured takes the place of what was assumed.
#pragma once

#include "terrace/profile.hpp"
#include "terrace/simulate.hpp"

namespace terrace::deeptm {

/// The profile with what the kernels of an executed step took, each for the tiers its plan stated. Planning
/// on with it from the agent that made the plan repeats the step as measured, so that the corrected rewards
/// feed the agent's replay buffer, and trains on from there. pre: the plan is of the graph and the profile;
/// `executed` has one interval for each of its instructions
Profile corrected(const Graph& graph, const Profile& profile, const Plan& plan, const Timeline& executed);

}  // namespace terrace::deeptm

// SPDX-License-Identifier: Apache-2.0
// DeepTM (004): tensors are rated by four properties, and an agent learns where each is best. What each part
// of the paper became: docs/planners/deeptm.md.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

/// The heat of tensors alone (004 section IV-A): hot ones are in fast memory, as long as there is room.
///
///   by=all|size|lifetime|recency|frequency   what heat is made of; one property alone as in 004 Fig. 4
///   weights=dynamic|fixed                    whether Algorithm 1 adjusts the weights
///   hotter=short|long                        which lifetimes make hot: 004 says both (heat.hpp)
///   copies=async|sync                        whether tensors move beside kernels, or kernels stand still
Result<Plan> plan_heat(const PlanRequest& request);

/// An agent that learns by deep Q-learning in the simulator (004 section IV-B, C). Takes the options of
/// `heat`, which its heat follows, and:
///
///   reward=share|time   what an action earns at once: 004 eq. 8, or the seconds it costs
///   beta=0..1           how much time counts beside the price of fast memory (eq. 13); 1: time alone
///   episodes=N          at most so many; without it, as many as the graph's size allows
///   seconds=S           the caller stops it after so long; the best plan so far is kept
///
/// What it learned goes to `request.agents`, and an agent of the same graph and machine is continued from.
Result<Plan> plan_deeptm(const PlanRequest& request);

}  // namespace terrace

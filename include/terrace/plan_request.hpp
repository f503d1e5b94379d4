// SPDX-License-Identifier: Apache-2.0
// What a plan is asked for: a graph on a machine, with how long its kernels take and how much memory there
// is. Planners turn it into a plan, bounds into a proof of what no plan can beat.
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "terrace/learned_agent.hpp"
#include "terrace/plan.hpp"
#include "terrace/profile.hpp"
#include "terrace/progress.hpp"

namespace terrace {

/// Borrows graph, machine and profile.
struct PlanRequest {
  const Graph& graph;
  const Machine& machine;
  const Profile& profile;
  std::vector<Bytes> budget;  ///< one for each tier, none above its capacity
  std::uint64_t seed = 0;
  std::map<std::string, std::string> options = {};  ///< of the planner, by name
  /// A planner that searches ends soon after a stop is requested, with the best plan it has. Planners read no
  /// clock: a caller who wants to wait for so many seconds requests the stop then.
  std::stop_token stop = {};
  /// Told by planners that take long what they have so far.
  ProgressSink progress = no_progress;
  /// What planners that learn know already; one that has learned adds to it. None: it begins anew, and what
  /// it learned is gone with it.
  LearnedAgents* agents = nullptr;
};

}  // namespace terrace

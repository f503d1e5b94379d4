// What a plan is asked for: a graph on a machine, with how long its kernels take and how much memory there
// is. Planners turn it into a plan, bounds into a proof of what no plan can beat.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "terrace/plan.hpp"
#include "terrace/profile.hpp"

namespace terrace {

/// Borrows graph, machine and profile.
struct PlanRequest {
  const Graph& graph;
  const Machine& machine;
  const Profile& profile;
  std::vector<Bytes> budget;  ///< one for each tier, none above its capacity
  std::uint64_t seed = 0;
  std::map<std::string, std::string> options = {};  ///< of the planner, by name
};

}  // namespace terrace

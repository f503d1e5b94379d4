// SPDX-License-Identifier: Apache-2.0
#include "terrace/learned_agent.hpp"

#include <algorithm>
#include <limits>

namespace terrace {
namespace {

bool is_of(const LearnedAgent& agent, std::string_view planner, std::string_view graph,
           std::string_view machine) {
  return agent.planner == planner && agent.graph == graph && agent.machine == machine;
}

}  // namespace

const LearnedAgent* nearest_agent(const LearnedAgents& agents, std::string_view planner,
                                  std::string_view graph, std::string_view machine, Bytes fast) {
  const LearnedAgent* nearest = nullptr;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const LearnedAgent& agent : agents) {
    if (!is_of(agent, planner, graph, machine) || agent.budget.empty()) continue;
    const auto [low, high] = std::minmax(agent.budget[0].count, fast.count);
    if (nearest != nullptr && high - low >= least) continue;
    nearest = &agent;
    least = high - low;
  }
  return nearest;
}

void keep_agent(LearnedAgents& agents, LearnedAgent agent) {
  const auto same = std::find_if(agents.begin(), agents.end(), [&](const LearnedAgent& other) {
    return is_of(other, agent.planner, agent.graph, agent.machine) && other.budget == agent.budget;
  });
  if (same == agents.end()) {
    agents.push_back(std::move(agent));
  } else {
    *same = std::move(agent);
  }
}

}  // namespace terrace

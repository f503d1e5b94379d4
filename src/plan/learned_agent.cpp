// SPDX-License-Identifier: Apache-2.0
#include "terrace/learned_agent.hpp"

#include <algorithm>
#include <utility>

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
  std::pair<bool, std::uint64_t> least;
  for (const LearnedAgent& agent : agents) {
    if (agent.planner != planner || agent.graph != graph || agent.budget.empty()) continue;
    const auto [low, high] = std::minmax(agent.budget[0].count, fast.count);
    const std::pair<bool, std::uint64_t> off{agent.machine != machine, high - low};
    if (nearest != nullptr && off >= least) continue;
    nearest = &agent;
    least = off;
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

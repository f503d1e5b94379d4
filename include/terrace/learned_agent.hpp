// SPDX-License-Identifier: Apache-2.0
// What a planner that learns has learned of one graph on one machine with one budget. Plain data: whoever
// asks for plans keeps it from one request to the next, in memory or in a file, and hands it in again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace {

struct LearnedAgent {
  std::string planner;         ///< with the options that change what is learned
  std::string graph, machine;  ///< fingerprints
  std::vector<Bytes> budget;
  std::vector<float> weights;         ///< of its network
  std::vector<std::uint8_t> actions;  ///< of the best episode: a tier for every decision, in order
  std::uint32_t episodes = 0;         ///< that it was trained for
  bool operator==(const LearnedAgent&) const = default;
};

/// One agent each for a planner, a graph, a machine and a budget.
using LearnedAgents = std::vector<LearnedAgent>;

/// The agent of that planner and graph whose budget of fast memory is nearest, or nullptr. Agents of the same
/// machine come before all others: one that turned out otherwise is another machine.
const LearnedAgent* nearest_agent(const LearnedAgents& agents, std::string_view planner,
                                  std::string_view graph, std::string_view machine, Bytes fast);
/// Takes the place of one of the same planner, graph, machine and budget.
void keep_agent(LearnedAgents& agents, LearnedAgent agent);

/// Format: docs/formats/agents.md. Reading what was written gives the same agents.
std::string to_json(const LearnedAgents& agents);
Result<LearnedAgents> agents_from_json(std::string_view text);

}  // namespace terrace

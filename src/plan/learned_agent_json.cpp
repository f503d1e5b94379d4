// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "base/json_reader.hpp"
#include "terrace/learned_agent.hpp"

namespace terrace {
namespace {

constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostTier = 255;

LearnedAgent read_agent(const JsonValue& value) {
  const JsonObject object(value, {"planner", "graph", "machine", "budget", "weights", "actions", "episodes"});
  LearnedAgent agent;
  agent.planner = object.need("planner").text();
  agent.graph = object.need("graph").text();
  agent.machine = object.need("machine").text();
  const JsonValue budget = object.need("budget"), weights = object.need("weights"),
                  actions = object.need("actions");
  for (std::size_t i = 0; i < budget.size(); ++i)
    agent.budget.push_back({static_cast<std::uint64_t>(budget[i].integer(0, kMostBytes))});
  for (std::size_t i = 0; i < weights.size(); ++i) agent.weights.push_back(weights[i].single());
  for (std::size_t i = 0; i < actions.size(); ++i)
    agent.actions.push_back(static_cast<std::uint8_t>(actions[i].integer(0, kMostTier)));
  agent.episodes = static_cast<std::uint32_t>(
      object.need("episodes").integer(0, std::numeric_limits<std::uint32_t>::max()));
  return agent;
}

}  // namespace

std::string to_json(const LearnedAgents& agents) {
  nlohmann::json all = nlohmann::json::array();
  for (const LearnedAgent& agent : agents) {
    nlohmann::json budget = nlohmann::json::array();
    for (const Bytes bytes : agent.budget) budget.push_back(bytes.count);
    nlohmann::json actions = nlohmann::json::array();
    for (const std::uint8_t tier : agent.actions) actions.push_back(static_cast<int>(tier));
    all.push_back({{"planner", agent.planner},
                   {"graph", agent.graph},
                   {"machine", agent.machine},
                   {"budget", std::move(budget)},
                   {"weights", agent.weights},
                   {"actions", std::move(actions)},
                   {"episodes", agent.episodes}});
  }
  return all.dump();
}

Result<LearnedAgents> agents_from_json(std::string_view text) try {
  const nlohmann::json json = parse_json(text);
  const JsonValue all(json, "agents");
  LearnedAgents agents;
  for (std::size_t i = 0; i < all.size(); ++i) agents.push_back(read_agent(all[i]));
  return agents;
} catch (const JsonError& error) {
  return Error{ErrorCode::invalid_argument, error.what()};
}

}  // namespace terrace

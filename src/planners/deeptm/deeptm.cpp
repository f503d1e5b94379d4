// SPDX-License-Identifier: Apache-2.0
#include "planners/deeptm/deeptm.hpp"

#include <fmt/format.h>

#include "migration/fit.hpp"
#include "planners/deeptm/options.hpp"

namespace terrace {
namespace {

/// What makes two agents strangers: all that changes what their states and actions mean.
std::string kind_of(const deeptm::EnvironmentRules& rules) {
  return fmt::format("deeptm with idle tensors {} {} {} {} {}", static_cast<int>(rules.heat.property),
                     static_cast<int>(rules.heat.weighting), static_cast<int>(rules.heat.hotter),
                     static_cast<int>(rules.copies), static_cast<int>(rules.reward));
}

void keep(const PlanRequest& request, const std::string& kind, const deeptm::Training& training) {
  keep_agent(*request.agents, {kind, fingerprint(request.graph), fingerprint(request.machine), request.budget,
                               training.weights(), training.actions(), training.episodes()});
}

}  // namespace

Result<Plan> plan_deeptm(const PlanRequest& request) {
  const auto options = deeptm::parse_options(request);
  if (!options) return options.error();
  const deeptm::Environment environment(request, options->rules);
  deeptm::TrainingRules rules = options->training;
  rules.seed = request.seed;
  deeptm::Training training(environment, rules);
  const std::string kind = kind_of(options->rules);
  const LearnedAgent* known = request.agents == nullptr
                                  ? nullptr
                                  : nearest_agent(*request.agents, kind, fingerprint(request.graph),
                                                  fingerprint(request.machine), request.budget[0]);
  if (known != nullptr) training.continue_from(*known);
  training.run();
  if (request.agents != nullptr) keep(request, kind, training);
  auto plan = plan_to_fit(request, environment.view().uses, "deeptm",
                          [&](Bytes capacity) { return training.draft(capacity); });
  if (plan)
    plan->remark =
        fmt::format("the best of {} episodes, found in number {}{}{}", training.episodes(),
                    training.found_at() + 1, known != nullptr ? ", with an agent trained before" : "",
                    request.stop.stop_requested() ? ", stopped before it ended" : "");
  return plan;
}

}  // namespace terrace

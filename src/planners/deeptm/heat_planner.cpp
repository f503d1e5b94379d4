// SPDX-License-Identifier: Apache-2.0
#include "migration/fit.hpp"
#include "planners/deeptm/deeptm.hpp"
#include "planners/deeptm/heat_policy.hpp"
#include "planners/deeptm/options.hpp"

namespace terrace {

Result<Plan> plan_heat(const PlanRequest& request) {
  const auto options = deeptm::parse_options(request);
  if (!options) return options.error();
  const deeptm::Environment environment(request, options->rules);
  return plan_to_fit(request, environment.view().uses, "heat", [&](Bytes capacity) {
    deeptm::Rollout rollout(environment, capacity);
    while (!rollout.done()) rollout.act(deeptm::by_heat(rollout));
    return rollout.write(kPlanEffort);
  });
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "terrace/verify.hpp"

#include <fmt/format.h>

namespace terrace {
namespace {

Error refused(const Plan& plan, const std::string& why) {
  return {ErrorCode::invalid_argument, fmt::format("the plan by {} is refused: {}", plan.planner, why)};
}

Error made_for_another(const Plan& plan, const char* what, const std::string& planned,
                       const std::string& here) {
  return refused(
      plan, fmt::format("it was made for another {0} (fingerprint {1}, here {2}); plan again for this {0}",
                        what, planned, here));
}

}  // namespace

Result<VerifiedPlan> verify(const Graph& graph, const Machine& machine, Plan plan) {
  if (const auto here = fingerprint(graph); plan.graph != here)
    return made_for_another(plan, "graph", plan.graph, here);
  if (const auto here = fingerprint(machine); plan.machine != here)
    return made_for_another(plan, "machine", plan.machine, here);
  const auto found = violations(graph, machine, plan, 1);
  if (found.empty()) return VerifiedPlan(std::move(plan));
  return refused(plan, to_text(found.front(), graph, machine, plan));
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/check.hpp"
#include "plan/verify_state.hpp"

namespace terrace {

std::vector<Violation> violations(const Graph& graph, const Machine& machine, const Plan& plan,
                                  std::size_t limit) {
  const auto graph_valid = validate(graph);
  check(graph_valid.ok(), graph_valid.ok() ? "" : graph_valid.error().message.c_str());
  const auto machine_valid = validate(machine);
  check(machine_valid.ok(), machine_valid.ok() ? "" : machine_valid.error().message.c_str());
  check(limit > 0, "a verdict needs room for one violation");
  return Verification(graph, machine, plan, limit).run();
}

std::string to_text(const Violation& violation, const Graph& graph, const Machine& machine,
                    const Plan& plan) {
  if (violation.moment == Moment::start) return "at the start: " + violation.reason;
  if (violation.moment == Moment::end) return "at the end: " + violation.reason;
  return fmt::format("at instruction {} ({}): {}", violation.instruction,
                     to_text(plan.instructions[violation.instruction], graph, machine), violation.reason);
}

}  // namespace terrace

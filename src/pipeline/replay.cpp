// SPDX-License-Identifier: Apache-2.0
#include "pipeline/replay.hpp"

#include <fmt/format.h>

namespace terrace {

Workload workload_of(const Record& record) {
  Program program;
  program.graph = record.graph;
  program.peak = record.peak;
  return {std::move(program), record.machine, false, record.peak, record.split_kernels};
}

Result<void> has_tiers_for(const Record& record, const Machine& machine) {
  if (machine.tiers.size() >= record.machine.tiers.size()) return {};
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("machine {} has {} tiers and the record's {} has {}: plan for that machine", machine.name,
                  machine.tiers.size(), record.machine.name, record.machine.tiers.size())};
}

Result<Plan> moved_to(const Record& record, const Machine& machine) {
  Plan plan = *record.plan;
  plan.machine = fingerprint(machine);
  plan.budget.resize(machine.tiers.size());
  for (std::size_t i = 0; i < record.machine.tiers.size(); ++i) {
    if (plan.budget[i] <= machine.tiers[i].capacity) continue;
    return Error{
        ErrorCode::too_large,
        fmt::format("the plan takes {} of tier {} and {} of machine {} has {}: plan for that machine",
                    readable(plan.budget[i]), record.machine.tiers[i].name, machine.tiers[i].name,
                    machine.name, readable(machine.tiers[i].capacity))};
  }
  return plan;
}

}  // namespace terrace

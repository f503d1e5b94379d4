// SPDX-License-Identifier: Apache-2.0
// A record of a small graph that does not fit in fast memory.
#pragma once

#include "support/random_graph.hpp"
#include "terrace/planner.hpp"
#include "terrace/record.hpp"

namespace terrace::test {

inline Machine small_machine() {
  Machine machine = machine_preset("optane-autotm").value();
  machine.name = "small";
  return machine;
}

inline Graph small_graph(std::uint64_t seed = 7) {
  RandomGraphOptions options;
  options.kernels = 24;
  return RandomGraph(options, seed).run();
}

/// Planned by `lru` within a little more than the least.
inline Record small_record() {
  Record record;
  record.model = "random";
  record.batch = 4;
  record.graph = small_graph();
  record.machine = small_machine();
  record.profile = estimate(record.graph, record.machine);
  for (const MachineTier& tier : record.machine.tiers) record.budget.push_back(tier.capacity);
  record.budget[0] = least_budget(record.graph, record.machine).bytes * 2;
  record.peak = Bytes{1U << 20U};
  record.plan =
      make_plan("lru", {record.graph, record.machine, record.profile, record.budget}).value();
  return record;
}

}  // namespace terrace::test

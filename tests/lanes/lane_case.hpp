// SPDX-License-Identifier: Apache-2.0
// Random graphs with plans for several engines: a random plan for one lane, spread at random.
#pragma once

#include "base/random.hpp"
#include "migration/spread.hpp"
#include "support/lane_machine.hpp"
#include "support/random_graph.hpp"
#include "support/random_plan.hpp"

namespace terrace::testing {

/// Two memories, both of which all engines reach.
inline Machine machine_of(std::uint32_t engines) {
  Machine machine = lane_machine(Bytes{1 << 24}, "engine0");
  machine.source = "tests";
  for (MachineTier& tier : machine.tiers) tier.spec = "dram:16MiB";
  const auto link = [](std::uint32_t from, std::uint32_t to) {
    return Link{{from}, {to}, {{Bytes{64}, {2e8}}, {Bytes{4096}, {1e9}}}, 0.8, 0.1, 1, 0.9};
  };
  machine.links = {link(0, 1), link(1, 0)};
  for (std::uint32_t i = 1; i < engines; ++i) {
    const double rate = i == 1 ? 5e8 : 2e9;  // one is slower than the first engine, one faster
    add_engine(machine, rate, {{0}, {1}});
  }
  return machine;
}

struct SpreadCase {
  Graph graph;
  Machine machine;
  Plan serial;  ///< on one lane
  Plan plan;    ///< on several
};

inline SpreadCase spread_case(std::uint64_t seed, std::uint32_t kernels = 0) {
  RandomGraphOptions options;
  options.kernels = kernels > 0 ? kernels : static_cast<std::uint32_t>(4 + seed % 20);
  options.least = Bytes{1};
  options.most = Bytes{1500};
  options.workspace_share = 0.25;
  options.rewrite_share = 0.2;
  SpreadCase made{random_graph(options, seed), machine_of(2 + seed % 2), {}, {}};
  const auto budget = random_budget(made.graph, made.machine, seed);
  made.serial = random_plan(made.graph, made.machine, budget, seed);
  made.serial.machine = fingerprint(made.machine);
  SplitMix random(seed);
  std::vector<EngineId> engines;
  for (std::size_t k = 0; k < made.graph.kernels.size(); ++k)
    engines.push_back({static_cast<std::uint32_t>(random.below(made.machine.engine_count()))});
  made.plan =
      spread(made.graph, made.machine, made.serial, [&](KernelId kernel) { return engines[kernel.index]; });
  return made;
}

}  // namespace terrace::testing

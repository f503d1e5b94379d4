// SPDX-License-Identifier: Apache-2.0
// Small placement problems for tests of AutoTM's programs.
#pragma once

#include "base/random.hpp"
#include "planners/autotm/autotm.hpp"
#include "support/random_graph.hpp"
#include "terrace/lifetimes.hpp"

namespace terrace::autotm {

constexpr Formulation kFormulations[] = {Formulation::fixed, Formulation::synchronous,
                                         Formulation::asynchronous};

/// Two tiers between which moving may or may not pay. Transfers of both directions share one link's time, and
/// kernels lose nothing to them, as the programs have it.
inline Machine two_tiers(SplitMix& random, bool addressable) {
  const auto rate = [&](double unit) {
    return BytesPerSecond{unit * static_cast<double>(1 + random.below(8))};
  };
  Machine machine;
  machine.name = "two";
  machine.source = "tests";
  machine.compute = {"any", 1, 1e7};
  machine.tiers = {
      {"fast", Bytes{1 << 30}, true, {4e9}, {4e9}, Seconds{0}, Bytes{64}, {}, ""},
      {"slow", Bytes{1 << 30}, addressable, rate(1e8), rate(5e7), Seconds{1e-7}, Bytes{64}, {}, ""}};
  machine.links = {{{0}, {1}, {{Bytes{64}, rate(2e8)}}, 0.5, 0, 1},
                   {{1}, {0}, {{Bytes{64}, rate(2e8)}}, 0.5, 0, 1}};
  return machine;
}

struct Problem {
  Graph graph;
  Machine machine;
  Profile profile;
  std::vector<Bytes> budget;

  Problem(std::uint64_t seed, std::uint32_t kernels) {
    SplitMix random(seed);
    RandomGraphOptions options;
    options.kernels = kernels;
    options.max_fan_in = 2;
    options.least = Bytes{1024};
    options.workspace_share = 0.25;
    options.rewrite_share = 0.2;
    graph = random_graph(options, seed);
    add_variants(random);
    machine = two_tiers(random, random.below(3) > 0);
    profile = estimate(graph, machine);
    // From what is too little to more than everything.
    const std::uint64_t peak = Lifetimes(graph).peak_bytes().count;
    budget = {Bytes{random.below(peak * 6 / 5)}, Bytes{1 << 30}};
  }
  /// To be solved exactly, unless the options say otherwise.
  PlanRequest request(std::map<std::string, std::string> options = {}) const {
    options.insert({"solver", "cbc"});
    return {graph, machine, profile, budget, 1, std::move(options)};
  }

 private:
  /// Some kernels have a second implementation, which may need more scratch than there is.
  void add_variants(SplitMix& random) {
    for (Kernel& kernel : graph.kernels) {
      if (random.below(3) != 0) continue;
      const Bytes scratch = kernel.workspace ? graph[kernel.workspace].bytes : Bytes{};
      kernel.variants = {{"plain", {}, Seconds{1e-5 + 1e-6 * static_cast<double>(random.below(90))}},
                         {"other", random.below(2) == 0 ? scratch : scratch + Bytes{1}, Seconds{2e-5}}};
    }
  }
};

}  // namespace terrace::autotm

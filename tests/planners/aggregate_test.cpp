// SPDX-License-Identifier: Apache-2.0
// Aggregated plans: what travels together lies together, and a plan is only replaced by a better one.
#include <gtest/gtest.h>

#include "baseline_rig.hpp"
#include "migration/aggregate.hpp"
#include "support/random_graph.hpp"
#include "support/random_machine.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/simulate.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

/// Each layer forward makes three tensors that its layer back uses.
Graph three_for_each_layer(int length, std::uint64_t bytes) {
  RigGraph rig;
  TensorId last = rig.tensor("x", kMega, TensorKind::input);
  std::vector<std::vector<TensorId>> kept;
  for (int i = 0; i < length; ++i) {
    std::vector<TensorId> made;
    for (const char* name : {"a", "b", "c"})
      made.push_back(rig.tensor(name + std::to_string(i), bytes, TensorKind::activation));
    rig.kernel("forward" + std::to_string(i), {last}, made, Phase::forward, 1);
    last = made[0];
    kept.push_back(std::move(made));
  }
  TensorId gradient = last;
  for (int i = length - 1; i >= 0; --i) {
    const TensorId next = rig.tensor("d" + std::to_string(i), 64, TensorKind::gradient);
    std::vector<TensorId> reads = kept[static_cast<std::size_t>(i)];
    if (gradient != reads[0]) reads.push_back(gradient);
    rig.kernel("backward" + std::to_string(i), reads, {next}, Phase::backward, 1);
    gradient = next;
  }
  rig.graph.results = {gradient};
  return rig.graph;
}

/// A transfer without a fixed cost gains nothing by company, and waiting for more costs time.
TEST(Aggregate, NeverMakesAPlanSlower) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomGraphOptions shape;
    shape.kernels = 12;
    const Planned planned(random_graph(shape, seed), random_machine(seed));
    PlanRequest request = planned.request(0);
    request.budget[0] = std::max(least_budget(planned.graph, planned.machine).bytes,
                                 Bytes{Lifetimes(planned.graph).peak_bytes().count / 2});
    request.budget[0] = round_up(request.budget[0], planned.machine.tiers[0].granularity);
    for (const char* planner : {"prefetch", "sentinel", "lru"}) {
      const auto plain = make_plan(planner, request);
      if (!plain) continue;
      const auto together = make_plan(std::string(planner) + "+aggregate=on", request);
      ASSERT_TRUE(together.ok()) << seed << together.error().message;
      EXPECT_TRUE(violations(planned.graph, planned.machine, *together).empty()) << seed << planner;
      EXPECT_LE(together->prediction.step, plain->prediction.step) << seed << planner;
    }
  }
}

TEST(Aggregate, LaysSmallTensorsInSharedPages) {
  const Planned planned(three_for_each_layer(6, 512), rig_machine(1e7, true));
  const auto plain = make_plan("prefetch", planned.request(4 * kMega));
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  const Aggregation made = aggregated(planned.request(4 * kMega), *plain);
  EXPECT_GE(made.batched, 10U);
  EXPECT_TRUE(violations(planned.graph, planned.machine, made.plan).empty());
  // Those of one kernel lie within a page.
  for (int layer = 0; layer < 6; ++layer) {
    std::uint64_t least = ~std::uint64_t{0}, most = 0;
    for (const Instruction& one : made.plan.instructions) {
      const auto* alloc = std::get_if<Alloc>(&one);
      if (alloc == nullptr) continue;
      const std::string& name = planned.graph[alloc->tensor].name;
      if (name != "a" + std::to_string(layer) && name != "b" + std::to_string(layer)) continue;
      least = std::min(least, alloc->offset);
      most = std::max(most, alloc->offset + 512);
    }
    EXPECT_LE(most - least, 4096U) << layer;
  }
}

TEST(Aggregate, RefusesAWrongValue) {
  const Planned planned(rig_chain(3), rig_machine(1e6, false));
  const auto refused = make_plan("lru+aggregate=maybe", planned.request(6 * kMega));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "aggregate is on or off, and 'maybe' is given");
}

}  // namespace
}  // namespace terrace

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

std::size_t copies(const Plan& plan) {
  std::size_t count = 0;
  for (const Instruction& one : plan.instructions) count += std::holds_alternative<Copy>(one);
  return count;
}

Bytes moved(const Timeline& timeline) {
  Bytes bytes;
  for (const Traffic& traffic : timeline.moved) bytes += traffic.bytes;
  return bytes;
}

/// Every transfer costs a tenth of a second before its first byte, and as much for every megabyte.
Machine costly_transfers() {
  Machine machine = rig_machine(1e7, false);
  for (Link& link : machine.links)
    link.rates = {{Bytes{1}, {10}}, {Bytes{64 * kMega}, {64 * static_cast<double>(kMega) / 6.5}}};
  return machine;
}

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

/// What is fetched for one kernel travels as one where there is room for that, and every transfer that is
/// saved is time saved.
TEST(Aggregate, LetsWhatIsUsedTogetherTravelTogether) {
  const Planned planned(three_for_each_layer(6, kMega), costly_transfers());
  const auto plain = make_plan("heat+copies=sync", planned.request(10 * kMega));
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  const PlanRequest roomy = planned.request(20 * kMega);
  const Aggregation made = aggregated(roomy, *plain);
  EXPECT_TRUE(violations(planned.graph, planned.machine, made.plan).empty());
  EXPECT_EQ(made.transfers_before, copies(*plain));
  EXPECT_EQ(made.transfers, copies(made.plan));
  EXPECT_LT(made.transfers, made.transfers_before);
  const Timeline before = simulate(planned.graph, planned.machine, planned.profile, *plain),
                 after = simulate(planned.graph, planned.machine, planned.profile, made.plan);
  EXPECT_LT(after.step, before.step);
  EXPECT_EQ(moved(after), moved(before));
  for (std::size_t tier = 0; tier < 2; ++tier) EXPECT_LE(made.plan.budget[tier], roomy.budget[tier]);
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

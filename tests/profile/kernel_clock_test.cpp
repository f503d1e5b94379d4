// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/random.hpp"
#include "profile/operands.hpp"
#include "terrace/profile.hpp"

namespace terrace {
namespace {

constexpr TierId kFast{0}, kSlow{1};

/// Borrowed things kept together.
struct Rig {
  Graph graph;
  Machine machine = two_tier_machine();
  Profile profile = estimate(graph, machine);

  double time(const std::vector<TierId>& tiers, std::uint32_t variant = 0) const {
    return KernelClock(graph, machine, profile).time({0}, variant, tiers).count();
  }
};

TEST(KernelClock, TakesAsLongAsASlowerTierNeedsForAllOperandsThere) {
  const Rig rig{one_kernel({24}, {12}, 1000)};
  EXPECT_DOUBLE_EQ(rig.time({kFast, kFast}), 10);
  EXPECT_DOUBLE_EQ(rig.time({kSlow, kFast}), 12);
  EXPECT_DOUBLE_EQ(rig.time({kFast, kSlow}), 12);
  EXPECT_DOUBLE_EQ(rig.time({kSlow, kSlow}), 24);
}

TEST(KernelClock, HidesASlowerTierBehindComputing) {
  const Rig rig{one_kernel({8}, {4}, 1000)};
  EXPECT_DOUBLE_EQ(rig.time({kSlow, kSlow}), 10);
}

TEST(KernelClock, ChargesAWorkspaceForWritingAndReading) {
  Rig rig{one_kernel({20}, {10}, 1000)};
  add_workspace(rig.graph, 10);
  rig.profile = estimate(rig.graph, rig.machine);
  EXPECT_DOUBLE_EQ(rig.time({kFast, kFast, kSlow}), 5 + 10);
}

TEST(KernelClock, CountsTheLatencyOfATierOncePerOperand) {
  Rig rig{one_kernel({20, 20}, {}, 1000)};
  rig.machine.tiers[1].latency = Seconds{0.25};
  EXPECT_DOUBLE_EQ(rig.time({kSlow, kSlow}), 2 * (10 + 0.25));
}

TEST(KernelClock, GainsNothingFromATierFasterThanTheFirst) {
  Rig rig{one_kernel({20}, {}, 1000)};
  rig.machine.tiers[1].read = {1000};
  EXPECT_DOUBLE_EQ(rig.time({kSlow}), 10);
}

TEST(KernelClock, PrefersWhatWasMeasuredForExactlyThesePlaces) {
  Rig rig{one_kernel({20}, {10}, 1000)};
  PlacedTime measured;
  measured.tiers = {kSlow, kFast};
  measured.cold = measured.warm = Seconds{12};
  rig.profile.kernels[0].variants[0].push_back(measured);
  EXPECT_DOUBLE_EQ(rig.time({kSlow, kFast}), 12);
  EXPECT_DOUBLE_EQ(rig.time({kSlow, kSlow}), 20);
}

PlacedTime placed(std::vector<TierId> tiers, double seconds) {
  PlacedTime time;
  time.tiers = std::move(tiers);
  time.cold = time.warm = Seconds{seconds};
  return time;
}

TEST(KernelClock, FindsEachOfManyPlacementsHoweverManyOperands) {
  // More operands than a number has bits.
  const std::vector<std::uint64_t> inputs(70, 1);
  Rig rig{one_kernel(inputs, {}, 1000)};
  SplitMix random(7);
  auto& places = rig.profile.kernels[0].variants[0];
  for (int i = 0; i < 100; ++i) {
    std::vector<TierId> tiers(inputs.size());
    for (TierId& tier : tiers) tier.index = static_cast<std::uint32_t>(random.below(2));
    places.push_back(placed(tiers, 1000 + i));
    // Differs only where the number has no bit left.
    tiers[0].index = 1 - tiers[0].index;
    places.push_back(placed(tiers, 2000 + i));
  }
  const KernelClock clock(rig.graph, rig.machine, rig.profile);
  for (const PlacedTime& time : places) EXPECT_EQ(clock.time({0}, 0, time.tiers), time.cold);
  std::vector<TierId> unknown = places.back().tiers;
  unknown[1].index = 1 - unknown[1].index;
  EXPECT_LT(clock.time({0}, 0, unknown), Seconds{1000});
}

TEST(KernelClock, KeepsThePlacementsOfVariantsAndKernelsApart) {
  Rig rig{one_kernel({20}, {}, 1000)};
  rig.graph.kernels[0].variants = {{"a", {}, Seconds{1}}, {"b", {}, Seconds{2}}, {"c", {}, Seconds{3}}};
  rig.graph.kernels.push_back(rig.graph.kernels[0]);
  rig.profile = estimate(rig.graph, rig.machine);
  rig.profile.kernels[0].variants[1].push_back(placed({kSlow}, 100));
  rig.profile.kernels[1].variants[2].push_back(placed({kSlow}, 200));
  const KernelClock clock(rig.graph, rig.machine, rig.profile);
  const std::vector<TierId> slow{kSlow};
  EXPECT_EQ(clock.time({0}, 0, slow), Seconds{10}) << "composed";
  EXPECT_EQ(clock.time({0}, 1, slow), Seconds{100});
  EXPECT_EQ(clock.time({0}, 2, slow), Seconds{10});
  EXPECT_EQ(clock.time({1}, 1, slow), Seconds{10});
  EXPECT_EQ(clock.time({1}, 2, slow), Seconds{200});
}

TEST(KernelClock, IsNeverFasterElsewhereThanInTierZero) {
  Rig rig{one_kernel({20}, {10}, 1000)};
  rig.profile.kernels[0].variants[0].push_back(placed({kSlow, kFast}, 9));
  EXPECT_DOUBLE_EQ(rig.time({kSlow, kFast}), 10);
}

TEST(KernelClock, KnowsTheFastestVariantAndTheStep) {
  Rig rig{one_kernel({20}, {}, 1000)};
  rig.graph.kernels[0].variants = {{"a", {}, Seconds{7}}, {"b", {}, Seconds{4}}};
  rig.graph.kernels.push_back(rig.graph.kernels[0]);
  rig.profile = estimate(rig.graph, rig.machine);
  const KernelClock clock(rig.graph, rig.machine, rig.profile);
  EXPECT_DOUBLE_EQ(clock.fast({0}).count(), 4);
  EXPECT_DOUBLE_EQ(clock.fast_step().count(), 8);
  EXPECT_DOUBLE_EQ(rig.time({kFast}, 0), 7);
  EXPECT_DOUBLE_EQ(rig.time({kFast}, 1), 4);
}

TEST(KernelClock, RefusesAProfileOfAnotherGraph) {
  Rig rig{one_kernel({20}, {}, 1000)};
  const auto refuses = [&] {
    EXPECT_THROW(KernelClock(rig.graph, rig.machine, rig.profile), std::logic_error);
  };
  rig.profile.kernels.push_back(rig.profile.kernels[0]);
  refuses();
  rig.profile.kernels.pop_back();
  rig.profile.kernels[0].variants.clear();
  refuses();
  rig.profile.kernels[0].variants = {{}};
  refuses();
}

TEST(KernelClock, RefusesOperandsThatAreNotThere) {
  const Rig rig{one_kernel({20}, {}, 1000)};
  EXPECT_THROW(rig.time({}), std::logic_error);
  EXPECT_THROW(rig.time({kFast, kFast}), std::logic_error);
  EXPECT_THROW(rig.time({kFast}, 1), std::logic_error);
}

/// Reads 30 and 10 bytes and writes 10; the kernel before wrote the 30.
Graph two_kernels() {
  Graph graph = one_kernel({30, 10}, {10}, 0);
  Kernel before;
  before.outputs = {graph.kernels[0].inputs[0]};
  graph.kernels.insert(graph.kernels.begin(), before);
  return graph;
}

TEST(ColdShare, IsWhatTheKernelBeforeHasNotTouched) {
  const Graph graph = two_kernels();
  EXPECT_DOUBLE_EQ(cold_share(graph, {0}), 1);
  EXPECT_DOUBLE_EQ(cold_share(graph, {1}), 0.4);
}

TEST(ColdShare, OfAKernelThatTouchesNothingIsAll) {
  Graph graph;
  graph.kernels.resize(2);
  EXPECT_DOUBLE_EQ(cold_share(graph, {1}), 1);
}

TEST(KernelClock, MixesColdAndWarmByThatShare) {
  Rig rig{two_kernels()};
  for (KernelProfile& kernel : rig.profile.kernels) {
    kernel.variants[0][0].warm = Seconds{10};
    kernel.variants[0][0].cold = Seconds{20};
  }
  const KernelClock clock(rig.graph, rig.machine, rig.profile);
  EXPECT_DOUBLE_EQ(clock.fast({0}).count(), 20);
  EXPECT_DOUBLE_EQ(clock.fast({1}).count(), 14);
}

}  // namespace
}  // namespace terrace

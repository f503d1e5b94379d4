// SPDX-License-Identifier: Apache-2.0
// A tier that tier 0 has no links with is reached by hops, and what has to cross its links is part of the
// bound. That plans by hops keep every bit is for tests/queues/hops_test.cpp.
#include "migration/hops.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/graph_by_hand.hpp"
#include "terrace/bounds.hpp"
#include "terrace/planner.hpp"

namespace terrace {
namespace {

/// device, host and disk, of which neighbours are linked.
Machine three_tiers() {
  Machine machine;
  machine.name = "three";
  machine.source = "tests";
  machine.compute = {"any", 1, 1e11};
  const std::uint64_t granules[] = {256, 256, 4096};
  for (std::uint32_t i = 0; i < 3; ++i) {
    MachineTier tier;
    tier.name = std::vector<std::string>{"device", "host", "disk"}[i];
    tier.capacity = Bytes{1ULL << 30U};
    tier.addressable = i == 0;
    tier.read = tier.write = {1e11 / (1 + i)};
    tier.granularity = Bytes{granules[i]};
    machine.tiers.push_back(tier);
  }
  const auto link = [&](std::uint32_t from, std::uint32_t to, double rate) {
    machine.links.push_back({{from}, {to}, {{Bytes{4096}, {rate / 2}}, {Bytes{1 << 20}, {rate}}}, 0.9, 0.05});
  };
  link(0, 1, 1e10), link(1, 0, 1e10), link(1, 2, 1e9), link(2, 1, 2e9);
  return machine;
}

TEST(Hops, AreFoundBehindANearTierAlone) {
  Machine machine = three_tiers();
  const auto hop = hop_of(machine);
  ASSERT_TRUE(hop);
  EXPECT_EQ(hop->near, TierId{1});
  EXPECT_EQ(hop->far, TierId{2});
  machine.links.push_back({{0}, {2}, {{Bytes{1 << 20}, {1e9}}}});
  EXPECT_TRUE(hop_of(machine)) << "one way alone is no way back";
  machine.links.push_back({{2}, {0}, {{Bytes{1 << 20}, {1e9}}}});
  EXPECT_FALSE(hop_of(machine)) << "tier 0 reaches it by itself";
}

TEST(Hops, BoundCountsWhatHasToCrossTheDisksLinks) {
  constexpr std::uint64_t kMiB = 1 << 20;
  ByHand hand;
  for (int i = 0; i < 8; ++i) {
    const TensorId weight = hand.tensor("weight" + std::to_string(i), TensorKind::weight, kMiB);
    hand.graph[weight].persistent = true;
    // The last two are read and never changed.
    if (i < 6) {
      hand.kernel({weight}, {weight}, Seconds{1e-9});
    } else {
      hand.kernel({weight}, {hand.tensor("made" + std::to_string(i), TensorKind::activation, 256)},
                  Seconds{1e-9});
    }
  }
  const Machine machine = three_tiers();
  const Profile profile = estimate(hand.graph, machine);
  const auto bound = [&](std::uint64_t host) {
    return step_bound(
               {hand.graph, machine, profile, {Bytes{2 * kMiB}, Bytes{host * kMiB}, Bytes{64 * kMiB}}, 1})
        .step;
  };
  // Of eight, 8 - 2 - 1 begin and end on the disk; of these two may be those that are only read.
  EXPECT_DOUBLE_EQ(bound(1).count(), std::max(5.0 * kMiB / 2e9, 3.0 * kMiB / 1e9));
  EXPECT_LT(bound(6).count(), 2.0 * kMiB / 1e9) << "the host holds all of it";
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plan/packing.hpp"
#include "plan/packing_oracle.hpp"
#include "plan/training_traces.hpp"
#include "support/stress_factor.hpp"

namespace terrace {
namespace {

using testing::Items;

Items random_items(SplitMix& random, std::uint64_t most, std::uint64_t kernels, std::uint64_t lifetime) {
  Items items;
  const std::uint64_t largest = std::uint64_t{1} << (2 + random.below(18));
  for (auto left = 1 + random.below(most); left > 0; --left) {
    const std::uint64_t first = random.below(kernels);
    const std::uint64_t last = std::min(kernels - 1, first + random.below(lifetime));
    items.push_back(
        {Bytes{random.below(largest)}, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)});
  }
  return items;
}

Items some_items(SplitMix& random, std::uint64_t most) {
  const std::uint64_t kernels = 1 + random.below(60);
  return random_items(random, most, kernels, 1 + random.below(kernels));
}

/// Half of these are there from first to last but for an absence, as what is fetched back before a step ends.
Items items_with_absences(SplitMix& random, std::uint64_t most, std::uint64_t kernels) {
  Items items = random_items(random, most, kernels, kernels);
  for (PackingItem& item : items) {
    if (random.below(2) == 0) continue;
    const auto left = random.below(kernels - 1), back = left + 1 + random.below(kernels - 1 - left);
    item = {item.size,
            0,
            static_cast<std::uint32_t>(kernels - 1),
            {static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(back)}};
  }
  return items;
}

double ratio(const Packing& packing, Bytes bound) {
  return static_cast<double>(packing.total.count) / static_cast<double>(bound.count);
}

TEST(PackingProperty, IsValidAndNeverBelowTheBound) {
  SplitMix random(1);
  for (int round = 0; round < 300 * stress_factor(); ++round) {
    const Items items = some_items(random, 150);
    const Bytes alignment{std::uint64_t{1} << random.below(9)};
    const Packing packing = pack(items, alignment, {200'000});
    const auto valid = validate(items, packing);
    ASSERT_TRUE(valid) << round << ": " << valid.error().message;
    EXPECT_EQ(packing.alignment, alignment);
    EXPECT_EQ(packing.total.count % alignment.count, 0u);
    EXPECT_GE(packing.total, live_bytes_bound(items, alignment)) << round;
  }
}

TEST(PackingProperty, WhatIsAwayIsInNobodysWay) {
  SplitMix random(9);
  for (int round = 0; round < 200 * stress_factor(); ++round) {
    const Items items = items_with_absences(random, 100, 2 + random.below(60));
    const Bytes bound = live_bytes_bound(items, Bytes{8});
    for (const Packing& packing :
         {pack(items, Bytes{8}, {200'000}), pack_in_time_order(items, Bytes{8}, bound)}) {
      const auto valid = validate(items, packing);
      ASSERT_TRUE(valid) << round << ": " << valid.error().message;
      EXPECT_GE(packing.total, bound) << round;
    }
  }
}

TEST(PackingProperty, SmallSetsWithAbsencesReachTheSmallestTotal) {
  SplitMix random(10);
  int rounds = 60 * stress_factor(), gains = 0;
  for (int round = 0; round < rounds; ++round) {
    Items items = items_with_absences(random, 6, 4 + random.below(6));
    const Bytes optimum = testing::PackingOracle(items, Bytes{1}).smallest_total();
    EXPECT_EQ(pack(items, Bytes{1}).total, optimum) << round;
    for (PackingItem& item : items) item.away = {};
    gains += testing::PackingOracle(items, Bytes{1}).smallest_total() > optimum;
  }
  EXPECT_GT(gains, 0) << "the generator makes no absence that helps";
}

TEST(PackingProperty, TheTotalIsWhereTheHighestItemEnds) {
  SplitMix random(2);
  for (int round = 0; round < 100; ++round) {
    const Items items = some_items(random, 50);
    const Packing packing = pack(items, Bytes{16}, {200'000});
    std::uint64_t highest = 0;
    for (std::size_t i = 0; i < items.size(); ++i)
      highest = std::max(highest, packing.offsets[i] + round_up(items[i].size, Bytes{16}).count);
    EXPECT_EQ(packing.total.count, highest);
  }
}

TEST(PackingProperty, SmallSetsReachTheSmallestTotal) {
  SplitMix random(3);
  int rounds = 100 * stress_factor(), greedy_misses = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t kernels = 2 + random.below(8);
    const Items items = random_items(random, 7, kernels, 1 + kernels / 2);
    const Bytes optimum = testing::PackingOracle(items, Bytes{1}).smallest_total();
    const Packing packing = pack(items, Bytes{1});
    ASSERT_GE(packing.total, optimum) << round << ": the oracle is wrong";
    EXPECT_EQ(packing.total, optimum) << round;
    greedy_misses += pack(items, Bytes{1}, {0}).total > optimum;
  }
  EXPECT_GT(greedy_misses, 0) << "the generator makes only easy sets";
}

TEST(PackingProperty, SmallSetsAreNotLeftWhereOneClimbEnds) {
  SplitMix random(7);
  for (int round = 0; round < 3000 * stress_factor(); ++round) {
    Items items;
    for (int i = 0; i < 7; ++i) {
      const std::uint64_t first = random.below(7), last = std::min<std::uint64_t>(6, first + random.below(6));
      items.push_back({Bytes{1 + random.below(1000)}, static_cast<std::uint32_t>(first),
                       static_cast<std::uint32_t>(last)});
    }
    const Packing packing = pack(items, Bytes{1});
    if (packing.total == live_bytes_bound(items, Bytes{1})) continue;
    EXPECT_EQ(packing.total, testing::PackingOracle(items, Bytes{1}).smallest_total()) << round;
  }
}

TEST(PackingProperty, IsTheSameEveryTime) {
  SplitMix random(4);
  for (int round = 0; round < 20; ++round) {
    const Items items = some_items(random, 100);
    EXPECT_EQ(pack(items, Bytes{8}, {300'000}).offsets, pack(items, Bytes{8}, {300'000}).offsets);
  }
}

TEST(PackingProperty, ScalesWithItsSizes) {
  SplitMix random(5);
  for (int round = 0; round < 20; ++round) {
    const Items items = some_items(random, 60);
    Items scaled = items;
    for (PackingItem& item : scaled) item.size = item.size * 512;
    const Packing plain = pack(items, Bytes{1}, {300'000}), larger = pack(scaled, Bytes{512}, {300'000});
    EXPECT_EQ(larger.total, plain.total * 512);
  }
}

TEST(PackingProperty, OnlyTheOrderOfTimeMatters) {
  SplitMix random(6);
  for (int round = 0; round < 20; ++round) {
    const Items items = some_items(random, 60);
    Items later = items;
    for (PackingItem& item : later) item.first += 1000, item.last += 1000;
    EXPECT_EQ(pack(later, Bytes{1}, {300'000}).offsets, pack(items, Bytes{1}, {300'000}).offsets);
  }
}

TEST(PackingProperty, MoreEffortIsNeverWorse) {
  SplitMix random(7);
  for (int round = 0; round < 10; ++round) {
    // Long lifetimes: hard enough that the bound is seldom reached.
    const Items items = random_items(random, 60, 60, 60);
    Bytes before = pack(items, Bytes{1}, {0}).total;
    for (const std::uint64_t looks : {1000u, 10'000u, 100'000u, 1'000'000u, 10'000'000u}) {
      const Bytes after = pack(items, Bytes{1}, {looks}).total;
      EXPECT_LE(after, before);
      before = after;
    }
  }
}

TEST(PackingProperty, AnItemMoreNeverLowersTheBound) {
  SplitMix random(8);
  for (int round = 0; round < 100; ++round) {
    Items items = some_items(random, 60);
    const Bytes before = live_bytes_bound(items, Bytes{4});
    items.push_back(some_items(random, 1)[0]);
    EXPECT_GE(live_bytes_bound(items, Bytes{4}), before);
  }
}

TEST(PackingInTimeOrder, IsValidWhateverTheLimit) {
  SplitMix random(11);
  for (int round = 0; round < 300 * stress_factor(); ++round) {
    const Items items = some_items(random, 150);
    const Bytes alignment{std::uint64_t{1} << random.below(9)}, bound = live_bytes_bound(items, alignment);
    const Packing packing = pack_in_time_order(items, alignment, Bytes{random.below(2 * bound.count + 1)});
    const auto valid = validate(items, packing);
    ASSERT_TRUE(valid) << round << ": " << valid.error().message;
    EXPECT_EQ(packing.total.count % alignment.count, 0u);
    EXPECT_GE(packing.total, bound) << round;
  }
}

TEST(PackingInTimeOrder, FindsRoomBetweenTheLivingBeforeItGrows) {
  // The second dies and the fourth is as large.
  const Items items{{Bytes{64}, 0, 9}, {Bytes{128}, 0, 3}, {Bytes{64}, 0, 9}, {Bytes{128}, 5, 9}};
  EXPECT_EQ(pack_in_time_order(items, Bytes{64}, Bytes{256}).total, Bytes{256});
}

// ---- What training asks for

struct Trace {
  const char* name;
  Items items;
};

TEST(TrainingPacking, LandsWithinTwoPercentOfTheBound) {
  const Trace traces[] = {
      {"chain 20", testing::chain_net(20, 1)},       {"chain 100", testing::chain_net(100, 2)},
      {"chain 400", testing::chain_net(400, 3)},     {"residual 16", testing::residual_net(16, 4)},
      {"residual 66", testing::residual_net(66, 5)}, {"dense 60", testing::dense_net(60, 6)},
      {"dense 132", testing::dense_net(132, 7)},
  };
  for (const auto& [name, items] : traces) {
    const Packing packing = pack(items, Bytes{64}, {5'000'000});
    ASSERT_TRUE(validate(items, packing)) << name;
    const Bytes bound = live_bytes_bound(items, Bytes{64});
    EXPECT_LE(ratio(packing, bound), 1.02) << name;
    EXPECT_LE(ratio(pack_in_time_order(items, Bytes{64}, bound), bound), 1.35) << name;
  }
}

TEST(TrainingPacking, PacksTenThousandItems) {
  const Items items = testing::chain_net(1700, 8);
  ASSERT_GE(items.size(), 10'000u);
  const Packing packing = pack(items, Bytes{64}, {0});
  ASSERT_TRUE(validate(items, packing));
  EXPECT_LE(ratio(packing, live_bytes_bound(items, Bytes{64})), 1.02);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "plan/packing.hpp"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "plan/packing_oracle.hpp"
#include "plan/training_traces.hpp"

namespace terrace {
namespace {

using testing::Items;

// Bytes, first, last.
PackingItem item(std::uint64_t size, std::uint32_t first, std::uint32_t last) {
  return {Bytes{size}, first, last};
}

std::uint64_t total(const Items& items, std::uint64_t alignment = 1) {
  const Packing packing = pack(items, Bytes{alignment});
  const auto valid = validate(items, packing);
  EXPECT_TRUE(valid) << valid.error().message;
  return packing.total.count;
}

TEST(LiveBytesBound, IsTheLargestSumAtOneTime) {
  const Items items{item(10, 0, 4), item(20, 2, 3), item(30, 4, 9), item(5, 9, 9)};
  EXPECT_EQ(live_bytes_bound(items, Bytes{1}).count, 40u);
  EXPECT_EQ(live_bytes_bound(Items{}, Bytes{1}).count, 0u);
}

TEST(LiveBytesBound, CountsAnItemAtItsFirstAndLastKernel) {
  EXPECT_EQ(live_bytes_bound(Items{item(10, 0, 4), item(20, 4, 8)}, Bytes{1}).count, 30u);
  EXPECT_EQ(live_bytes_bound(Items{item(10, 0, 4), item(20, 5, 8)}, Bytes{1}).count, 20u);
}

TEST(LiveBytesBound, LeavesOutWhatIsAway) {
  const Items items{{Bytes{10}, 0, 9, {2, 7}}, item(15, 3, 6), item(1, 0, 9)};
  EXPECT_EQ(live_bytes_bound(items, Bytes{1}), Bytes{16});
}

TEST(LiveBytesBound, RoundsEverySizeUp) {
  EXPECT_EQ(live_bytes_bound(Items{item(1, 0, 1), item(65, 0, 1), item(0, 0, 1)}, Bytes{64}).count, 192u);
}

TEST(LiveBytesBound, RejectsWrongItems) {
  EXPECT_THROW((void)live_bytes_bound(Items{item(1, 2, 1)}, Bytes{1}), std::logic_error);
  EXPECT_THROW((void)live_bytes_bound(Items{}, Bytes{0}), std::logic_error);
  const std::uint64_t huge = std::uint64_t{1} << 62;
  EXPECT_THROW((void)live_bytes_bound(Items{item(huge, 0, 0), item(huge, 1, 1)}, Bytes{1}), std::logic_error);
  EXPECT_THROW((void)live_bytes_bound(Items{item(~std::uint64_t{0}, 0, 0)}, Bytes{64}), std::logic_error);
  EXPECT_THROW((void)live_bytes_bound(Items{item(1, 0, 0)}, Bytes{~std::uint64_t{0}}), std::logic_error);
}

TEST(Pack, TakesNothingForNothing) {
  EXPECT_EQ(total({}), 0u);
  EXPECT_EQ(total({item(0, 0, 9), item(0, 0, 9)}), 0u);
}

TEST(Pack, ReusesTheSpaceOfTheDead) {
  EXPECT_EQ(total({item(10, 0, 4), item(10, 5, 9), item(7, 10, 10)}), 10u);
}

TEST(Pack, KeepsTheLivingApart) { EXPECT_EQ(total({item(10, 0, 4), item(10, 4, 9)}), 20u); }

TEST(Pack, LendsOutThePlaceOfWhatIsAway) {
  const PackingItem away{Bytes{10}, 0, 9, {2, 7}};
  EXPECT_EQ(total({away, item(10, 3, 6)}), 10u);
  EXPECT_EQ(total({away, item(10, 2, 6)}), 20u) << "it has not left yet";
  EXPECT_EQ(total({away, item(10, 3, 7)}), 20u) << "it is back already";
}

TEST(Pack, AlignsEveryOffset) {
  const Items items{item(1, 0, 9), item(100, 0, 9), item(65, 0, 9)};
  EXPECT_EQ(total(items, 64), 64u + 128 + 128);
  for (const std::uint64_t offset : pack(items, Bytes{64}).offsets) EXPECT_EQ(offset % 64, 0u);
}

TEST(Pack, ItemsOfNoSizeStayInTheirPlaceOfTheList) {
  const Items items{item(0, 0, 9), item(8, 0, 9), item(0, 0, 9), item(4, 0, 9)};
  const Packing packing = pack(items, Bytes{4});
  ASSERT_EQ(packing.offsets.size(), 4u);
  EXPECT_EQ(packing.total.count, 12u);
  EXPECT_TRUE(validate(items, packing));
}

TEST(Pack, PutsWhatLivesAllTheTimeAtTheBottom) {
  const Items items{item(100, 0, 4), item(3, 0, 9), item(100, 6, 9), item(5, 0, 9)};
  const Packing packing = pack(items, Bytes{1});
  EXPECT_EQ(packing.total.count, 108u);
  EXPECT_EQ(packing.offsets[0], 8u);
  EXPECT_EQ(packing.offsets[2], 8u);
}

TEST(Pack, FindsWhatNoGreedyOrderDoes) {
  // Of many random sets, one in which improving helps: greedy orders alone leave more than the bound.
  SplitMix random(20);
  int helped = 0;
  for (int round = 0; round < 20; ++round) {
    Items items;
    for (int i = 0; i < 30; ++i) {
      const auto first = static_cast<std::uint32_t>(random.below(30));
      items.push_back(
          item(1 + random.below(1000), first, first + static_cast<std::uint32_t>(random.below(10))));
    }
    const Packing greedy = pack(items, Bytes{1}, {0}), improved = pack(items, Bytes{1});
    EXPECT_LE(improved.total, greedy.total);
    helped += improved.total < greedy.total;
  }
  EXPECT_GE(helped, 5);
}

TEST(Pack, RejectsWrongItems) {
  EXPECT_THROW((void)pack(Items{item(1, 2, 1)}, Bytes{1}), std::logic_error);
  EXPECT_THROW((void)pack(Items{}, Bytes{0}), std::logic_error);
}

TEST(Pack, TakesSizesNearTheLimit) {
  const std::uint64_t large = std::uint64_t{1} << 61;
  EXPECT_EQ(
      total({item(large, 0, 0xFFFFFFFF), item(large, 0, 0xFFFFFFFE), item(large, 0xFFFFFFFF, 0xFFFFFFFF)}),
      2 * large);
}

// ---- Validation

std::string complaint(const Items& items, const Packing& packing) {
  const auto valid = validate(items, packing);
  return valid ? "" : valid.error().message;
}

TEST(ValidatePacking, NamesTwoThatOverlap) {
  const Items items{item(10, 0, 9), item(10, 0, 4), item(10, 4, 9)};
  EXPECT_EQ(complaint(items, {{20, 0, 10}, Bytes{30}, Bytes{1}}), "");
  const std::string message = complaint(items, {{20, 0, 9}, Bytes{30}, Bytes{1}});
  EXPECT_NE(
      message.find("item 1 (offsets 0 to 10, kernels 0 to 4) and item 2 (offsets 9 to 19, kernels 4 to 9)"),
      std::string::npos)
      << message;
}

TEST(ValidatePacking, SeesTheSameOffsetAndContainment) {
  const Items items{item(10, 0, 9), item(10, 3, 3), item(1, 9, 9)};
  EXPECT_NE(complaint(items, {{0, 0, 10}, Bytes{30}, Bytes{1}}), "");
  EXPECT_NE(complaint(items, {{0, 10, 5}, Bytes{30}, Bytes{1}}), "");
  EXPECT_EQ(complaint(items, {{0, 10, 10}, Bytes{30}, Bytes{1}}), "");
}

TEST(ValidatePacking, SeesWhatIsOutOfPlace) {
  const Items items{item(10, 0, 9)};
  EXPECT_NE(complaint(items, {{}, Bytes{30}, Bytes{1}}).find("0 offsets for 1 items"), std::string::npos);
  EXPECT_NE(complaint(items, {{4}, Bytes{30}, Bytes{8}}).find("multiple of 8"), std::string::npos);
  EXPECT_NE(complaint(items, {{21}, Bytes{30}, Bytes{1}}).find("after the total"), std::string::npos);
  EXPECT_NE(complaint(items, {{31}, Bytes{30}, Bytes{1}}).find("after the total"), std::string::npos);
}

TEST(ValidatePacking, AgreesWithComparingAllPairs) {
  SplitMix random(7);
  int valid = 0, rounds = 4000;
  for (int round = 0; round < rounds; ++round) {
    Items items;
    Packing packing{{}, Bytes{100}, Bytes{1}};
    for (auto left = random.below(7); left > 0; --left) {
      const auto first = static_cast<std::uint32_t>(random.below(10));
      items.push_back(item(random.below(8), first, first + static_cast<std::uint32_t>(random.below(4))));
      packing.offsets.push_back(random.below(40));
      if (items.back().last == first + 3) items.back().away = {first, first + 2};
    }
    bool overlap = false;
    for (std::size_t i = 0; i < items.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        overlap |= testing::PackingOracle::meet(items[i], items[j]) &&
                   packing.offsets[i] < packing.offsets[j] + items[j].size.count &&
                   packing.offsets[j] < packing.offsets[i] + items[i].size.count && items[i].size.count > 0 &&
                   items[j].size.count > 0;
    EXPECT_EQ(validate(items, packing).ok(), !overlap) << round;
    valid += !overlap;
  }
  // Both outcomes are common.
  EXPECT_GT(valid, rounds / 10);
  EXPECT_LT(valid, rounds * 9 / 10);
}

/// Packs with a reserve and checks the packing, and that nothing else reaches into it.
Packing with_reserve(const Items& items, const std::vector<bool>& in_reserve, std::uint64_t limit,
                     std::uint64_t alignment = 1) {
  const Packing packing = pack_with_reserve(items, in_reserve, Bytes{alignment}, Bytes{limit});
  const auto valid = validate(items, packing);
  EXPECT_TRUE(valid) << valid.error().message;
  for (std::size_t r = 0; r < items.size(); ++r) {
    for (std::size_t o = 0; o < items.size(); ++o) {
      const bool meet = items[r].first <= items[o].last && items[o].first <= items[r].last;
      if (!in_reserve[r] || in_reserve[o] || !meet || items[o].size.count == 0) continue;
      EXPECT_GE(packing.offsets[r], packing.offsets[o] + items[o].size.count) << r << " and " << o;
    }
  }
  return packing;
}

TEST(PackWithReserve, GivesOthersWhatTheReserveNoLongerNeeds) {
  const Items items{item(60, 0, 1), item(40, 0, 1), item(90, 2, 3), item(10, 2, 3)};
  EXPECT_EQ(with_reserve(items, {true, false, false, true}, 100).total.count, 100u);
}

TEST(PackWithReserve, ExceedsTheLimitWhereTheOthersDoNotFitBelow) {
  const Items items{item(60, 0, 1), item(50, 0, 1)};
  EXPECT_EQ(with_reserve(items, {true, false}, 100).total.count, 110u);
}

TEST(PackWithReserve, HoldsForRandomItems) {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 60; ++round) {
    Items items;
    std::vector<bool> in_reserve;
    for (int i = 0; i < 80; ++i) {
      const bool reserved = below(3) == 0;
      const auto first = static_cast<std::uint32_t>(below(100));
      items.push_back(item(below(50), first, first + static_cast<std::uint32_t>(below(reserved ? 3 : 40))));
      in_reserve.push_back(reserved);
    }
    const std::uint64_t alignment = round % 2 == 0 ? 1 : 16;
    with_reserve(items, in_reserve, live_bytes_bound(items, Bytes{alignment}).count, alignment);
  }
}

}  // namespace
}  // namespace terrace

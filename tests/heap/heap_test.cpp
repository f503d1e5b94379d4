// SPDX-License-Identifier: Apache-2.0
#include "terrace/heap.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace terrace {
namespace {
using namespace literals;

Slot place(Heap& heap, Bytes size, Bytes alignment = {}, std::uint64_t owner = 0) {
  return heap.allocate(size, alignment, owner).value();
}

TEST(Heap, RoundsSizesUpToTheGranularity) {
  Heap heap(64_KiB, 4_KiB);
  const Slot slot = place(heap, 1_B);
  EXPECT_EQ(heap.size(slot), 4_KiB);
  EXPECT_EQ(heap.statistics().used, 4_KiB);
  EXPECT_EQ(heap.size(place(heap, 4097_B)), 8_KiB);
}

TEST(Heap, TakesTheSmallestHoleThatFits) {
  Heap heap(1_MiB, 64_B);
  const Slot large = place(heap, 8_KiB);
  place(heap, 64_B);
  const Slot small = place(heap, 4_KiB);
  place(heap, 64_B);
  const std::uint64_t expected = heap.offset(small);
  heap.free(large);
  heap.free(small);
  EXPECT_EQ(heap.offset(place(heap, 3_KiB)), expected);
}

TEST(Heap, TakesTheLowestOfEqualHoles) {
  Heap heap(1_MiB, 64_B);
  std::vector<Slot> slots;
  for (int i = 0; i < 9; ++i) slots.push_back(place(heap, 4_KiB));
  const std::uint64_t lowest = heap.offset(slots[1]);
  for (const int i : {5, 1, 7, 3}) heap.free(slots[i]);
  EXPECT_EQ(heap.offset(place(heap, 4_KiB)), lowest);
}

TEST(Heap, JoinsAFreedBlockWithTheHolesOnBothSides) {
  Heap heap(12_KiB, 4_KiB);
  const Slot a = place(heap, 4_KiB), b = place(heap, 4_KiB), c = place(heap, 4_KiB);
  EXPECT_EQ(heap.statistics().holes, 0u);
  heap.free(a);
  heap.free(c);
  EXPECT_EQ(heap.statistics().holes, 2u);
  heap.free(b);
  EXPECT_EQ(heap.statistics().holes, 1u);
  EXPECT_EQ(heap.largest_hole(), 12_KiB);
}

TEST(Heap, ReturnsLargestHoleWhenFull) {
  Heap heap(16_KiB, 4_KiB);
  const Slot a = place(heap, 8_KiB);
  place(heap, 4_KiB);
  heap.free(a);
  const auto result = heap.allocate(12_KiB);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::tier_full);
  EXPECT_NE(result.error().message.find("the largest hole is 8KiB"), std::string::npos)
      << result.error().message;
}

TEST(Heap, RefusesWhatItCanNeverHold) {
  Heap heap(16_KiB, 4_KiB);
  EXPECT_EQ(heap.allocate(16385_B).error().code, ErrorCode::too_large);
  EXPECT_EQ(heap.allocate(Bytes{~0ull}).error().code, ErrorCode::too_large);
  EXPECT_EQ(heap.allocate(0_B).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(heap.allocate(1_KiB, 3_KiB).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(heap.allocate(1_KiB, 4_MiB).error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(heap.allocate(16_KiB));
}

TEST(Heap, AlignsFrom64BytesTo2MiB) {
  Heap heap(16_MiB, 64_B);
  for (Bytes alignment = 64_B; alignment <= 2_MiB; alignment = alignment * 2) {
    place(heap, 64_B);
    EXPECT_EQ(heap.offset(place(heap, 4_KiB, alignment)) % alignment.count, 0u) << to_string(alignment);
    ASSERT_TRUE(heap.validate());
  }
}

TEST(Heap, UsesTheSpaceBeforeAnAlignedBlock) {
  Heap heap(4_MiB, 64_B);
  place(heap, 64_B);
  EXPECT_EQ(heap.offset(place(heap, 64_B, 2_MiB)), (2_MiB).count);
  EXPECT_EQ(heap.offset(place(heap, 64_B)), 64u);
}

TEST(Heap, FindsTheOnlyHoleThatFitsAnAlignment) {
  // The smaller hole is large enough but has no aligned place; the hole behind it has.
  Heap heap(64_KiB, 64_B);
  place(heap, 64_B);
  const Slot early = place(heap, 4_KiB);
  place(heap, 12_KiB - 64_B);
  const Slot late = place(heap, 8_KiB);
  place(heap, heap.largest_hole());
  heap.free(early);
  heap.free(late);
  EXPECT_EQ(heap.offset(place(heap, 4_KiB, 4_KiB)), (16_KiB).count);
  EXPECT_EQ(heap.allocate(4_KiB, 16_KiB).error().code, ErrorCode::tier_full);
}

TEST(Heap, CapacityNeedNotBeAMultipleOfTheAlignment) {
  Heap heap(2_MiB + 192_B, 64_B);
  const Slot whole = place(heap, 2_MiB + 192_B, 2_MiB);
  heap.free(whole);
  place(heap, 64_B);
  EXPECT_EQ(heap.offset(place(heap, 192_B, 2_MiB)), (2_MiB).count);
  EXPECT_EQ(heap.allocate(64_B, 2_MiB).error().code, ErrorCode::tier_full);
  EXPECT_TRUE(heap.validate());
}

TEST(Heap, AnEmptyTierRefusesEverything) {
  Heap heap(0_B, 64_B);
  EXPECT_EQ(heap.allocate(1_B).error().code, ErrorCode::too_large);
  EXPECT_EQ(heap.largest_hole(), 0_B);
  EXPECT_TRUE(heap.validate());
  heap.compact([](Slot, std::uint64_t, std::uint64_t, Bytes) { return true; });
}

TEST(Heap, GivesOwnersBack) {
  Heap heap(16_KiB, 4_KiB);
  const Slot slot = place(heap, 4_KiB, {}, 77);
  EXPECT_EQ(heap.owner(slot), 77u);
  heap.set_owner(slot, 78);
  EXPECT_EQ(heap.owner(slot), 78u);
}

TEST(Heap, DetectsAStaleSlotEvenWhenItsPlaceIsReused) {
  Heap heap(16_KiB, 4_KiB);
  const Slot old = place(heap, 16_KiB);
  heap.free(old);
  const Slot current = place(heap, 16_KiB);
  ASSERT_EQ(old.index, current.index);
  EXPECT_THROW(heap.free(old), std::logic_error);
  EXPECT_THROW(heap.offset(old), std::logic_error);
  EXPECT_THROW(heap.owner(Slot{}), std::logic_error);
  EXPECT_THROW(heap.size(Slot{1000, 1}), std::logic_error);
  EXPECT_EQ(heap.offset(current), 0u);
}

TEST(Heap, RefusesAGranularityThatIsNoPowerOfTwo) {
  EXPECT_THROW(Heap(12_KiB, 3_KiB), std::logic_error);
  EXPECT_THROW(Heap(12_KiB, 0_B), std::logic_error);
  EXPECT_THROW(Heap(12_KiB + 1_B, 4_KiB), std::logic_error);
}

TEST(Heap, CountsWhatItHolds) {
  Heap heap(64_KiB, 4_KiB);
  const Slot a = place(heap, 8_KiB);
  const Slot b = place(heap, 16_KiB);
  heap.free(a);
  const HeapStatistics now = heap.statistics();
  EXPECT_EQ(now.capacity, 64_KiB);
  EXPECT_EQ(now.used, 16_KiB);
  EXPECT_EQ(now.peak, 24_KiB);
  EXPECT_EQ(now.free, 48_KiB);
  EXPECT_EQ(now.largest_hole, 40_KiB);
  EXPECT_EQ(now.footprint, 24_KiB);
  EXPECT_EQ(now.blocks_used, 1u);
  EXPECT_EQ(now.holes, 2u);
  heap.free(b);
  EXPECT_EQ(heap.statistics().footprint, 24_KiB);
}

TEST(Heap, VisitsBlocksInAddressOrder) {
  Heap heap(64_KiB, 4_KiB);
  const Slot a = place(heap, 4_KiB), b = place(heap, 4_KiB), c = place(heap, 4_KiB);
  heap.free(a);
  const Slot d = place(heap, 4_KiB);
  std::vector<Slot> seen;
  heap.each([&](Slot slot) { seen.push_back(slot); });
  EXPECT_EQ(seen, (std::vector<Slot>{d, b, c}));
}

TEST(Heap, MovesAsAValue) {
  Heap first(16_KiB, 4_KiB);
  const Slot slot = place(first, 4_KiB, {}, 5);
  Heap second = std::move(first);
  EXPECT_EQ(second.owner(slot), 5u);
  Heap third(4_KiB, 4_KiB);
  third = std::move(second);
  EXPECT_EQ(third.owner(slot), 5u);
}

}  // namespace
}  // namespace terrace

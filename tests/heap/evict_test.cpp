// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "terrace/heap.hpp"

namespace terrace {
namespace {
using namespace literals;

// Ten blocks of one granule each, which fill the heap; their owners are their numbers.
class Evict : public ::testing::Test {
 protected:
  Evict() : heap_(40_KiB, 4_KiB) {
    for (std::uint64_t i = 0; i < 10; ++i) slots_.push_back(heap_.allocate(4_KiB, {}, i).value());
  }
  ~Evict() override { EXPECT_TRUE(heap_.validate()); }

  // Evicts all but the blocks numbered in `kept`, and notes whom it was asked for.
  Result<Bytes> evict_from(std::uint64_t start, Bytes size, std::vector<std::uint64_t> kept = {}) {
    return heap_.evict_from(slots_[start], size, [&, kept](Slot slot) {
      asked_.push_back(heap_.owner(slot));
      if (std::find(kept.begin(), kept.end(), asked_.back()) != kept.end()) return false;
      heap_.free(slot);
      return true;
    });
  }
  using Numbers = std::vector<std::uint64_t>;

  Heap heap_;
  std::vector<Slot> slots_;
  Numbers asked_;
};

TEST_F(Evict, ClearsExactlyTheBlocksInTheWay) {
  EXPECT_EQ(evict_from(3, 10_KiB).value(), 12_KiB);
  EXPECT_EQ(asked_, (Numbers{3, 4, 5}));
  EXPECT_EQ(heap_.offset(heap_.allocate(12_KiB).value()), (12_KiB).count);
}

TEST_F(Evict, CountsHolesInTheRange) {
  heap_.free(slots_[4]);
  EXPECT_EQ(evict_from(3, 12_KiB).value(), 12_KiB);
  EXPECT_EQ(asked_, (Numbers{3, 5}));
}

TEST_F(Evict, ReturnsTheWholeHoleThatWasMade) {
  heap_.free(slots_[2]);
  heap_.free(slots_[4]);
  EXPECT_EQ(evict_from(3, 4_KiB).value(), 12_KiB);
  EXPECT_EQ(asked_, Numbers{3});
}

TEST_F(Evict, CountsNothingBelowTheStart) {
  heap_.free(slots_[2]);
  EXPECT_EQ(evict_from(3, 8_KiB).value(), 12_KiB);
  EXPECT_EQ(asked_, (Numbers{3, 4}));
}

TEST_F(Evict, MovesBehindABlockThatIsKept) {
  EXPECT_EQ(evict_from(3, 8_KiB, {4}).value(), 8_KiB);
  EXPECT_EQ(asked_, (Numbers{3, 4, 5, 6}));
  EXPECT_EQ(heap_.owner(slots_[4]), 4u);
}

TEST_F(Evict, WrapsToTheBeginningWhenTheRangeDoesNotFitBeforeTheEnd) {
  EXPECT_EQ(evict_from(8, 12_KiB).value(), 12_KiB);
  EXPECT_EQ(asked_, (Numbers{0, 1, 2}));
}

TEST_F(Evict, WrapsOnlyOnce) {
  const auto result = evict_from(5, 12_KiB, {1, 4, 6, 9});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::tier_full);
  EXPECT_EQ(asked_, (Numbers{5, 6, 7, 8, 9, 0, 1, 2, 3, 4}));
  for (const int kept : {1, 4, 6, 9}) EXPECT_EQ(heap_.owner(slots_[kept]), std::uint64_t(kept));
}

TEST_F(Evict, MayReachOverTheStartAfterWrapping) {
  EXPECT_EQ(evict_from(2, 12_KiB, {3, 6, 9}).value(), 12_KiB);
  EXPECT_EQ(asked_, (Numbers{2, 3, 4, 5, 6, 7, 8, 9, 0, 1}));
}

TEST_F(Evict, SaysSoWhenEverythingIsKept) {
  const auto result = evict_from(5, 4_KiB, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("could not clear 4KiB"), std::string::npos);
  EXPECT_EQ(asked_, (Numbers{5, 6, 7, 8, 9, 0, 1, 2, 3, 4}));
}

TEST_F(Evict, CanClearTheWholeTier) {
  EXPECT_EQ(evict_from(0, 40_KiB).value(), 40_KiB);
  EXPECT_EQ(heap_.statistics().blocks_used, 0u);
}

TEST_F(Evict, RefusesImpossibleSizesWithoutEvicting) {
  EXPECT_EQ(evict_from(0, 0_B).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(evict_from(0, 41_KiB).error().code, ErrorCode::too_large);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(Evict, ACallbackMayFreeOtherBlocks) {
  int calls = 0;
  auto result = heap_.evict_from(slots_[3], 12_KiB, [&](Slot slot) {
    ++calls;
    heap_.free(slot);
    for (const int other : {2, 4, 5, 8}) heap_.free(slots_[other]);
    return true;
  });
  EXPECT_EQ(result.value(), 16_KiB);
  EXPECT_EQ(calls, 1);
}

TEST_F(Evict, KeepsBlocksThatTheCallbackAllocates) {
  std::vector<Slot> made;
  auto result = heap_.evict_from(slots_[3], 8_KiB, [&](Slot slot) {
    heap_.free(slot);
    if (made.empty()) made.push_back(heap_.allocate(4_KiB).value());  // lands where the block was
    return true;
  });
  EXPECT_EQ(result.value(), 8_KiB);
  EXPECT_EQ(heap_.offset(made[0]), (12_KiB).count);
  EXPECT_EQ(heap_.owner(slots_[6]), 6u);
}

TEST_F(Evict, EndsEvenIfTheCallbackAlwaysFillsTheHole) {
  int calls = 0;
  auto result = heap_.evict_from(slots_[3], 4_KiB, [&](Slot slot) {
    ++calls;
    heap_.free(slot);
    heap_.allocate(4_KiB).value();
    return true;
  });
  EXPECT_EQ(result.error().code, ErrorCode::tier_full);
  EXPECT_EQ(calls, 10);
}

TEST_F(Evict, ACallbackMayEvictAndCompact) {
  bool nested = false;
  auto result = heap_.evict_from(slots_[6], 12_KiB, [&](Slot slot) {
    heap_.free(slot);
    if (nested) return true;
    nested = true;
    EXPECT_TRUE(heap_.evict_from(slots_[0], 8_KiB, [&](Slot other) { return heap_.free(other), true; }));
    heap_.compact([](Slot, std::uint64_t, std::uint64_t, Bytes) { return true; });
    return true;
  });
  EXPECT_EQ(result.value(), 16_KiB);
}

TEST_F(Evict, LeavesASoundHeapWhenTheCallbackThrows) {
  EXPECT_THROW(heap_.evict_from(slots_[3], 8_KiB,
                                [&](Slot slot) -> bool {
                                  heap_.free(slot);
                                  throw std::runtime_error("copy failed");
                                }),
               std::runtime_error);
  EXPECT_EQ(heap_.largest_hole(), 4_KiB);
}

TEST_F(Evict, DetectsACallbackThatOnlyClaimsToHaveFreed) {
  EXPECT_THROW(heap_.evict_from(slots_[3], 8_KiB, [](Slot) { return true; }), std::logic_error);
  EXPECT_THROW(heap_.evict_from(Slot{}, 8_KiB, [](Slot) { return true; }), std::logic_error);
}

}  // namespace
}  // namespace terrace

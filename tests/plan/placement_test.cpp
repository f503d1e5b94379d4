// SPDX-License-Identifier: Apache-2.0
#include "plan/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"

namespace terrace {
namespace {

constexpr std::uint32_t kLast = 9;
Box always(std::uint64_t size) { return {size, 0, kLast}; }

// Gaps of 3, 2 and 4 units, each below a box of one unit.
Shelf with_gaps() {
  Shelf shelf;
  shelf.put(always(1), 3);
  shelf.put(always(1), 6);
  shelf.put(always(1), 11);
  return shelf;
}

TEST(Shelf, TheLowestFitTakesTheFirstGapThatIsLargeEnough) {
  EXPECT_EQ(with_gaps().place(always(1), Fit::lowest), 0u);
  EXPECT_EQ(with_gaps().place(always(3), Fit::lowest), 0u);
  EXPECT_EQ(with_gaps().place(always(4), Fit::lowest), 7u);
  EXPECT_EQ(with_gaps().place(always(5), Fit::lowest), 12u);
}

TEST(Shelf, TheTightestFitTakesTheSmallestGapThatIsLargeEnough) {
  EXPECT_EQ(with_gaps().place(always(1), Fit::tightest), 4u);
  EXPECT_EQ(with_gaps().place(always(3), Fit::tightest), 0u);
  EXPECT_EQ(with_gaps().place(always(4), Fit::tightest), 7u);
  EXPECT_EQ(with_gaps().place(always(5), Fit::tightest), 12u);
}

TEST(Shelf, BoxesOfOtherTimesAreNotInTheWay) {
  for (const Fit fit : {Fit::lowest, Fit::tightest}) {
    Shelf shelf;
    EXPECT_EQ(shelf.place({5, 0, 3}, fit), 0u);
    EXPECT_EQ(shelf.place({5, 4, 6}, fit), 0u);
    EXPECT_EQ(shelf.place({5, 3, 4}, fit), 5u);
    EXPECT_EQ(shelf.top(), 10u);
  }
}

TEST(Shelf, IsEmptyWhenCleared) {
  Shelf shelf = with_gaps();
  shelf.clear();
  EXPECT_EQ(shelf.top(), 0u);
  EXPECT_EQ(shelf.place(always(7), Fit::lowest), 0u);
}

TEST(Shelf, ManyBoxesArePlacedAsByTryingEveryOffset) {
  SplitMix random(1);
  Shelf shelf;
  std::vector<std::pair<Box, std::uint64_t>> placed;
  const auto is_free = [&](const Box& box, std::uint64_t offset) {
    return std::none_of(placed.begin(), placed.end(), [&](const auto& other) {
      return box.meets(other.first) && offset < other.second + other.first.size &&
             other.second < offset + box.size;
    });
  };
  for (int i = 0; i < 1500; ++i) {
    const auto first = static_cast<std::uint32_t>(random.below(200));
    const Box box{1 + random.below(20), first, first + static_cast<std::uint32_t>(random.below(20))};
    std::uint64_t lowest = 0;
    while (!is_free(box, lowest)) ++lowest;
    ASSERT_EQ(shelf.place(box, Fit::lowest), lowest) << i;
    placed.emplace_back(box, lowest);
  }
}

}  // namespace
}  // namespace terrace

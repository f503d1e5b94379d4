// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "terrace/heap.hpp"

namespace terrace {
namespace {
using namespace literals;

struct Move {
  Slot slot;
  std::uint64_t from, to;
  Bytes size;
  bool operator==(const Move&) const = default;
};

// Ten blocks of one granule each; every other one is freed.
class Compact : public ::testing::Test {
 protected:
  Compact() : heap_(64_KiB, 4_KiB) {
    for (std::uint64_t i = 0; i < 10; ++i) slots_.push_back(heap_.allocate(4_KiB, {}, i).value());
    for (std::size_t i = 0; i < 10; i += 2) heap_.free(slots_[i]);
  }
  ~Compact() override { EXPECT_TRUE(heap_.validate()); }

  Heap heap_;
  std::vector<Slot> slots_;
  std::vector<Move> moves_;
};

TEST_F(Compact, LeavesOneHoleAtTheEnd) {
  heap_.compact([&](Slot slot, std::uint64_t from, std::uint64_t to, Bytes size) {
    moves_.push_back({slot, from, to, size});
    return true;
  });
  EXPECT_EQ(heap_.statistics().holes, 1u);
  EXPECT_EQ(heap_.largest_hole(), 44_KiB);
  EXPECT_EQ(moves_.size(), 5u);
  EXPECT_EQ(moves_[1], (Move{slots_[3], (12_KiB).count, (4_KiB).count, 4_KiB}));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(heap_.offset(slots_[2 * i + 1]), (4_KiB).count * i);
}

TEST_F(Compact, WorksAroundARefusedBlock) {
  heap_.compact([&](Slot slot, std::uint64_t, std::uint64_t, Bytes) { return slot != slots_[5]; });
  EXPECT_EQ(heap_.offset(slots_[3]), (4_KiB).count);
  EXPECT_EQ(heap_.offset(slots_[5]), (20_KiB).count);
  EXPECT_EQ(heap_.offset(slots_[7]), (24_KiB).count);
  EXPECT_EQ(heap_.offset(slots_[9]), (28_KiB).count);
  EXPECT_EQ(heap_.statistics().holes, 2u);
}

TEST_F(Compact, AsksNothingWhenNothingCanMove) {
  for (std::size_t i = 1; i < 10; i += 2) heap_.free(slots_[i]);
  heap_.allocate(8_KiB).value();
  heap_.compact([&](Slot, std::uint64_t, std::uint64_t, Bytes) { return ADD_FAILURE(), true; });
}

TEST_F(Compact, TheCallbackSeesTheBlockInItsOldPlace) {
  heap_.compact([&](Slot slot, std::uint64_t from, std::uint64_t to, Bytes size) {
    EXPECT_EQ(heap_.offset(slot), from);
    EXPECT_EQ(heap_.size(slot), size);
    EXPECT_LT(to, from);
    EXPECT_TRUE(heap_.validate());
    return true;
  });
}

TEST_F(Compact, ACallbackMayFreeBlocks) {
  heap_.compact([&](Slot slot, std::uint64_t, std::uint64_t, Bytes) {
    if (slot == slots_[3]) heap_.free(slots_[5]);
    if (slot == slots_[7]) heap_.free(slot);
    return true;
  });
  EXPECT_EQ(heap_.statistics().blocks_used, 3u);
  EXPECT_EQ(heap_.statistics().holes, 1u);
  EXPECT_EQ(heap_.offset(slots_[9]), (8_KiB).count);
}

TEST_F(Compact, ACallbackMustNotAllocate) {
  const auto compact = [&](const std::function<void()>& act) {
    heap_.compact([&](Slot, std::uint64_t, std::uint64_t, Bytes) { return act(), true; });
  };
  EXPECT_THROW(compact([&] { heap_.allocate(4_KiB).value(); }), std::logic_error);
  EXPECT_THROW(compact([&] { compact([] {}); }), std::logic_error);
  EXPECT_EQ(heap_.offset(slots_[1]), (4_KiB).count);
  EXPECT_TRUE(heap_.allocate(4_KiB));
}

TEST(CompactAligned, KeepsAlignment) {
  Heap heap(8_MiB, 64_B);
  const Slot first = heap.allocate(1_MiB).value();
  const Slot second = heap.allocate(1_MiB, 2_MiB).value();
  const Slot third = heap.allocate(64_B, 1_MiB).value();
  const Slot fourth = heap.allocate(1_MiB, 2_MiB).value();
  ASSERT_EQ(heap.offset(second), (2_MiB).count);
  ASSERT_EQ(heap.offset(fourth), (4_MiB).count);
  heap.free(first);
  heap.free(third);
  heap.compact([](Slot, std::uint64_t, std::uint64_t, Bytes) { return true; });
  EXPECT_EQ(heap.offset(second), 0u);
  EXPECT_EQ(heap.offset(fourth), (2_MiB).count);
  EXPECT_TRUE(heap.validate());
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "exec/copy_memory.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {
using namespace literals;

/// So much memory is lent, and so much the system has left.
struct Lent {
  alignas(64) std::byte memory[1024];
  CopyMemory copies;
  explicit Lent(Bytes left = 1_GiB) : copies(memory, [left] { return left; }) {}

  bool holds(const CopyMemory::Room& room) const {
    return room.bytes().data() >= memory &&
           room.bytes().data() + room.bytes().size() <= memory + sizeof memory;
  }
};

TEST(CopyMemory, TakesWhatIsLentFirstAndCountsWhatTheSystemGives) {
  Lent lent;
  {
    const CopyMemory::Room first = lent.copies.take(600_B), second = lent.copies.take(500_B),
                           third = lent.copies.take(300_B);
    EXPECT_TRUE(lent.holds(first));
    EXPECT_FALSE(lent.holds(second));
    EXPECT_TRUE(lent.holds(third));
    EXPECT_EQ(second.bytes().size(), 500U);
    EXPECT_EQ(lent.copies.most_held(), 500_B);
  }
  EXPECT_TRUE(lent.holds(lent.copies.take(1024_B))) << "all of it was given back";
  const CopyMemory::Room larger = lent.copies.take(2000_B);
  EXPECT_EQ(lent.copies.most_held(), 2000_B) << "what was given back does not count";
}

TEST(CopyMemory, DoesWithoutLentMemory) {
  CopyMemory copies({});
  EXPECT_EQ(copies.take(64_B).bytes().size(), 64U);
  EXPECT_EQ(copies.most_held(), 64_B);
}

TEST(CopyMemory, RefusesWhatTheSystemHasNotLeft) {
  Lent lent(3000_B);
  try {
    lent.copies.take(3001_B);
    FAIL() << "there is not as much";
  } catch (const EnvironmentError& error) {
    const std::string message = error.what();
    EXPECT_EQ(
        message.find("a copy of 2.93 KiB is to wait in memory beside the tiers, where 2.93 KiB are left"), 0U)
        << message;
  }
  EXPECT_EQ(lent.copies.most_held(), Bytes{0});
  EXPECT_EQ(lent.copies.take(3000_B).bytes().size(), 3000U);
}

/// Rooms come and go in any order, and each keeps what was put there.
TEST(CopyMemory, GivesEachRoomBytesOfItsOwn) {
  Lent lent;
  SplitMix random(1);
  std::vector<std::pair<CopyMemory::Room, std::byte>> rooms;
  std::size_t of_the_system = 0;
  for (int i = 0; i < 2000; ++i) {
    if (rooms.size() < 8 && random.below(2) == 0) {
      const auto mark = static_cast<std::byte>(i % 251);
      rooms.emplace_back(lent.copies.take(Bytes{1 + random.below(300)}), mark);
      std::fill(rooms.back().first.bytes().begin(), rooms.back().first.bytes().end(), mark);
      of_the_system += !lent.holds(rooms.back().first);
    } else if (!rooms.empty()) {
      std::swap(rooms[random.below(rooms.size())], rooms.back());
      rooms.pop_back();
    }
    for (const auto& [room, mark] : rooms) {
      for (const std::byte value : room.bytes()) ASSERT_EQ(value, mark) << i;
    }
  }
  EXPECT_GT(of_the_system, 20U);
  EXPECT_LT(of_the_system, 900U);
  rooms.clear();
  EXPECT_TRUE(lent.holds(lent.copies.take(1024_B)));
}

}  // namespace
}  // namespace terrace

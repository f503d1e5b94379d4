// SPDX-License-Identifier: Apache-2.0
// The heap against its oracle: the same requests must give the same offsets.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "heap/oracle.hpp"
#include "terrace/heap.hpp"

namespace terrace {
namespace {
using namespace literals;
using testing::OracleHeap;

class Pair {
 public:
  Pair(Bytes capacity, Bytes granularity)
      : heap_(capacity, granularity), oracle_(capacity.count, granularity.count) {}

  void allocate(Bytes size, Bytes alignment) {
    const std::uint32_t name = ++names_;
    const auto slot = heap_.allocate(size, alignment, name);
    const auto expected = oracle_.allocate(size.count, alignment.count, name);
    ASSERT_EQ(slot.ok(), expected.has_value()) << to_string(size) << " aligned " << to_string(alignment);
    ++(slot ? granted_ : refused_);
    if (!slot) return;
    ASSERT_EQ(heap_.offset(*slot), *expected);
    live_.emplace(name, *slot);
  }
  void free(std::uint64_t choice) {
    if (live_.empty()) return;
    const auto found = std::next(live_.begin(), choice % live_.size());
    heap_.free(found->second);
    oracle_.free(found->first);
    live_.erase(found);
  }
  void compact(std::uint64_t refuse_mask) {
    heap_.compact([&](Slot slot, std::uint64_t, std::uint64_t to, Bytes) {
      const auto name = static_cast<std::uint32_t>(heap_.owner(slot));
      if ((refuse_mask >> (name % 64) & 1) != 0) return false;
      oracle_.move(name, to);
      return true;
    });
  }
  void compare() const {
    const HeapStatistics now = heap_.statistics();
    ASSERT_EQ(now.used.count, oracle_.used());
    ASSERT_EQ(now.largest_hole.count, oracle_.largest_hole());
    ASSERT_EQ(now.holes, oracle_.holes());
    ASSERT_EQ(now.blocks_used, live_.size());
    const auto sound = heap_.validate();
    ASSERT_TRUE(sound) << sound.error().message;
  }
  int granted() const { return granted_; }
  int refused() const { return refused_; }

 private:
  Heap heap_;
  OracleHeap oracle_;
  std::map<std::uint32_t, Slot> live_;
  std::uint32_t names_ = 0;
  int granted_ = 0, refused_ = 0;
};

class Oracle : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Oracle, AgreesOnEveryOffset) {
  std::mt19937_64 random(GetParam());
  const Bytes granularity{std::uint64_t{64} << random() % 3};
  const Bytes capacity = granularity * (1 + random() % 700);
  Pair pair(capacity, granularity);
  for (int step = 0; step < 3000; ++step) {
    const std::uint64_t dice = random() % 100;
    if (dice < 55) {
      const Bytes size{1 + random() % (capacity.count >> random() % 8)};
      const Bytes alignment{random() % 2 == 0 ? 0 : std::uint64_t{64} << random() % 10};
      pair.allocate(size, alignment);
    } else if (dice < 98) {
      pair.free(random());
    } else {
      pair.compact(random() & random());
    }
    if (HasFatalFailure()) FAIL() << "at step " << step;
    pair.compare();
    if (HasFatalFailure()) FAIL() << "at step " << step;
  }
  // The requests are worth nothing if they never meet a full heap, or never succeed.
  EXPECT_GT(pair.granted(), 500);
  EXPECT_GT(pair.refused(), 100);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Oracle, ::testing::Range<std::uint64_t>(0, 12));

// Equal sizes put every hole into one bin of the index: the lowest offset must still win.
TEST(OracleEqualSizes, TakesTheLowestOfManyEqualHoles) {
  std::mt19937_64 random(7);
  Pair pair(64_KiB, 64_B);
  for (int step = 0; step < 4000; ++step) {
    if (random() % 2 == 0) {
      pair.allocate(64_B, {});
    } else {
      pair.free(random());
    }
    if (step % 1000 > 800) pair.free(random());
    ASSERT_FALSE(HasFatalFailure()) << "at step " << step;
  }
  pair.compare();
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// A long seeded run over a heap whose bytes are real: every block carries a pattern of its own, which must
// survive whatever happens around it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "terrace/heap.hpp"

namespace terrace {
namespace {
using namespace literals;

constexpr std::uint64_t kSmallest = 64, kLargest = 64 * 1024;
constexpr Bytes kCapacity = 4_MiB + 192_B;

// Log-uniform in [kSmallest, kLargest]: as many blocks per octave, few large ones that hold most bytes.
std::uint64_t random_size(std::mt19937_64& random) {
  std::uniform_real_distribution<double> exponent(std::log2(kSmallest), std::log2(kLargest));
  return static_cast<std::uint64_t>(std::exp2(exponent(random)));
}

class Stress {
 public:
  explicit Stress(std::uint64_t seed) : random_(seed), heap_(kCapacity, 64_B), bytes_(kCapacity.count) {}

  void step() {
    const std::uint64_t dice = random_() % 1000;
    if (dice < 560) {
      allocate();
    } else if (dice < 990) {
      free_any();
    } else if (dice < 998) {
      evict();
    } else {
      compact();
    }
  }
  void validate() const {
    const auto sound = heap_.validate();
    ASSERT_TRUE(sound) << sound.error().message;
    ASSERT_EQ(heap_.statistics().blocks_used, live_.size());
  }
  void check_all() const {
    for (const Slot slot : live_) check_content(slot);
  }
  int refusals = 0, evictions = 0, moves = 0;

 private:
  std::uint8_t pattern(Slot slot) const { return static_cast<std::uint8_t>(heap_.owner(slot) * 37 + 1); }

  void check_content(Slot slot) const {
    const std::uint8_t* begin = &bytes_[heap_.offset(slot)];
    ASSERT_EQ(*begin, pattern(slot)) << "block " << heap_.owner(slot);
    ASSERT_EQ(std::memcmp(begin, begin + 1, heap_.size(slot).count - 1), 0) << "block " << heap_.owner(slot);
  }

  void allocate() {
    const Bytes alignment{random_() % 4 == 0 ? std::uint64_t{64} << random_() % 16 : 0};
    const auto slot = heap_.allocate({random_size(random_)}, alignment, ++names_);
    if (!slot) {
      ++refusals;
      return;
    }
    ASSERT_EQ(heap_.offset(*slot) % std::max<std::uint64_t>(64, alignment.count), 0u);
    std::memset(&bytes_[heap_.offset(*slot)], pattern(*slot), heap_.size(*slot).count);
    live_.push_back(*slot);
  }

  void free_block(std::size_t place) {
    check_content(live_[place]);
    heap_.free(live_[place]);
    live_[place] = live_.back();
    live_.pop_back();
  }
  void free_any() {
    if (!live_.empty()) free_block(random_() % live_.size());
  }
  void free_block(Slot slot) {
    free_block(static_cast<std::size_t>(std::find(live_.begin(), live_.end(), slot) - live_.begin()));
  }

  // The callback keeps some blocks and changes the heap elsewhere too.
  void evict() {
    if (live_.empty()) return;
    const Bytes size{random_size(random_) * 4};
    const auto hole = heap_.evict_from(live_[random_() % live_.size()], size, [&](Slot slot) {
      if (random_() % 8 == 0) return false;
      ++evictions;
      free_block(slot);
      if (random_() % 4 == 0) free_any();
      if (random_() % 4 == 0) allocate();
      return true;
    });
    if (!hole) return;
    ASSERT_GE(*hole, size);
    ASSERT_GE(heap_.largest_hole(), *hole);
    const auto made = heap_.allocate(size);
    ASSERT_TRUE(made) << "the hole made by eviction takes the block";
    heap_.free(*made);
  }

  void compact() {
    const std::uint64_t refuse = random_() % 20;  // names that end in this stay where they are
    heap_.compact([&](Slot slot, std::uint64_t from, std::uint64_t to, Bytes size) {
      if (heap_.owner(slot) % 20 == refuse) return false;
      ++moves;
      std::memmove(&bytes_[to], &bytes_[from], size.count);
      return true;
    });
    check_all();
  }

  std::mt19937_64 random_;
  Heap heap_;
  std::vector<std::uint8_t> bytes_;
  std::vector<Slot> live_;
  std::uint64_t names_ = 0;
};

TEST(HeapStress, KeepsEveryBlocksBytes) {
  constexpr int kSteps = 250'000;
  Stress stress(20);
  for (int step = 0; step < kSteps; ++step) {
    stress.step();
    if (step % 100 == 0) stress.validate();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "at step " << step;
  }
  stress.check_all();
  // The run must have met what it is meant to test.
  EXPECT_GT(stress.refusals, kSteps / 50);
  EXPECT_GT(stress.evictions, kSteps / 200);
  EXPECT_GT(stress.moves, kSteps / 10);
}

TEST(HeapStress, DrawsSizesLogUniformly) {
  std::mt19937_64 random(21);
  constexpr int kDraws = 100'000, kOctaves = 10;
  std::vector<int> octaves(kOctaves);
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t size = random_size(random);
    ASSERT_GE(size, kSmallest);
    ASSERT_LE(size, kLargest);
    ++octaves[std::min<std::size_t>(kOctaves - 1, std::bit_width(size / kSmallest) - 1)];
  }
  for (const int count : octaves) EXPECT_NEAR(count, kDraws / kOctaves, kDraws / kOctaves / 10);
}

}  // namespace
}  // namespace terrace

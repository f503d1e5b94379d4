// SPDX-License-Identifier: Apache-2.0
// What every tier must do. A new kind of tier joins with a few lines in one test file:
//
//   const TierCase kTiers[] = {{"Plain", "mine:FOLDER/name:4MiB"}};
//   INSTANTIATE_TEST_SUITE_P(Mine, TierConformance, testing::ValuesIn(kTiers), tier_case_name);
//   INSTANTIATE_TEST_SUITE_P(Mine, BlockConformance, testing::ValuesIn(kTiers), tier_case_name);
//
// The second is for block tiers. FOLDER stands for a folder of the test's own. A kind this computer does not
// offer is skipped. To be included in one file of a test program only.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <bit>
#include <string>
#include <thread>
#include <vector>

#include "terrace/tier.hpp"
#include "tiers/cuda.hpp"
#include "tiers/temporary_folder.hpp"
#include "tiers/tier_access.hpp"

namespace terrace {

struct TierCase {
  std::string name, spec;
};

inline std::string tier_case_name(const testing::TestParamInfo<TierCase>& info) { return info.param.name; }
inline void PrintTo(const TierCase& tier, std::ostream* out) { *out << tier.spec; }

class TierConformance : public testing::TestWithParam<TierCase> {
 protected:
  void SetUp() override {
    // A GPU's context takes long to make: the program keeps one.
    static const auto gpu = open_cuda_device(0);
    auto tier = open_tier(spec());
    if (!tier && tier.error().code == ErrorCode::unsupported) GTEST_SKIP() << tier.error().message;
    ASSERT_TRUE(tier) << tier.error().message;
    tier_ = std::move(*tier);
  }

  TierSpec spec() const {
    std::string text = GetParam().spec;
    if (const auto place = text.find("FOLDER"); place != text.npos)
      text.replace(place, 6, folder_.path().string());
    return parse_tier_spec(text).value();
  }

  std::uint64_t capacity() const { return tier_->description().capacity.count; }

  TemporaryFolder folder_;
  std::unique_ptr<Tier> tier_;
};

TEST_P(TierConformance, DescribesWhatWasAskedFor) {
  const TierDescription& description = tier_->description();
  EXPECT_EQ(description.spec, spec());
  EXPECT_EQ(description.name, to_string(spec()));
  EXPECT_EQ(parse_tier_spec(description.name).value(), spec());
  EXPECT_TRUE(std::has_single_bit(description.granularity.count));
  EXPECT_GT(description.capacity.count, 0u);
  EXPECT_GE(description.capacity, round_down(spec().capacity, description.granularity));
  EXPECT_EQ(description.capacity % description.granularity, Bytes{0});
  EXPECT_GE(description.write_threads, 1u);
  EXPECT_GE(description.latency.count(), 0);
}

TEST_P(TierConformance, DescriptionStaysTheSame) {
  const TierDescription* const place = &tier_->description();
  const std::string name = place->name, note = place->note;
  const Bytes before = place->capacity;
  TierAccess access(*tier_);
  access.write(0, pattern(access.unit(), 1));
  EXPECT_EQ(&tier_->description(), place);
  EXPECT_EQ(place->name, name);
  EXPECT_EQ(place->note, note);
  EXPECT_EQ(place->capacity, before);
}

TEST_P(TierConformance, HasOneShape) {
  const bool addressable = tier_->description().addressable;
  const std::uint64_t granule = tier_->description().granularity.count;
  EXPECT_EQ(tier_->memory() != nullptr, addressable);
  EXPECT_EQ((tier_->memory() != nullptr) + (tier_->blocks() != nullptr) + (tier_->device() != nullptr), 1);
  EXPECT_FALSE(tier_->borrowed());
  if (addressable) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tier_->memory()) % granule, 0u);
  }
  if (tier_->device()) {
    EXPECT_EQ(tier_->device()->address.value % granule, 0u);
  }
}

TEST_P(TierConformance, WholeCapacityHoldsData) {
  TierAccess access(*tier_);
  const std::size_t step = access.unit() * 16;
  for (std::uint64_t at = 0; at < capacity(); at += step) {
    access.write(at, pattern(std::min<std::uint64_t>(step, capacity() - at), at));
  }
  for (std::uint64_t at = 0; at < capacity(); at += step) {
    const std::size_t size = std::min<std::uint64_t>(step, capacity() - at);
    ASSERT_EQ(access.read(at, size), pattern(size, at)) << "at " << at;
  }
}

TEST_P(TierConformance, FirstAndLastUnitsAreIndependent) {
  TierAccess access(*tier_);
  const std::uint64_t last = capacity() - access.unit();
  access.write(0, pattern(access.unit(), 1));
  access.write(last, pattern(access.unit(), 2));
  EXPECT_EQ(access.read(0, access.unit()), pattern(access.unit(), 1));
  EXPECT_EQ(access.read(last, access.unit()), pattern(access.unit(), 2));
}

TEST_P(TierConformance, RandomAccessesMatchAShadow) {
  TierAccess access(*tier_);
  const std::size_t unit = access.unit(), units = std::min<std::uint64_t>(capacity() / unit, 256);
  const std::uint64_t base = capacity() - units * unit;  // the end, where a wrong bound would show
  std::vector<std::byte> shadow(units * unit);
  access.write(base, shadow);
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    const std::size_t first = random() % units,
                      count = 1 + random() % std::min<std::size_t>(units - first, 20);
    const std::uint64_t at = first * unit, size = count * unit;
    if (random() % 2) {
      const auto data = pattern(size, random());
      access.write(base + at, data);
      std::copy(data.begin(), data.end(), shadow.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const auto data = access.read(base + at, size);
      ASSERT_TRUE(std::equal(data.begin(), data.end(), shadow.begin() + static_cast<std::ptrdiff_t>(at)))
          << "access " << i << " at " << at << " of " << size;
    }
  }
}

TEST_P(TierConformance, TwoOfTheSameSpecAreIndependent) {
  if (spec().keep) GTEST_SKIP() << "a kept file is shared on purpose";
  const auto other = open_tier(spec()).value();
  TierAccess one(*tier_), two(*other);
  one.write(0, pattern(one.unit(), 1));
  two.write(0, pattern(two.unit(), 2));
  EXPECT_EQ(one.read(0, one.unit()), pattern(one.unit(), 1));
  EXPECT_EQ(two.read(0, two.unit()), pattern(two.unit(), 2));
}

TEST_P(TierConformance, PacingAndChargingReturn) {
  tier_->pace(Access::read, Bytes{4096}, Seconds{0});
  tier_->pace(Access::write, Bytes{4096}, Seconds{0});
  tier_->pace(Access::write, Bytes{0}, Seconds{0});
  tier_->charge(Bytes{4096}, Bytes{4096}, Seconds{1e-6});
  tier_->charge(Bytes{0}, Bytes{0}, Seconds{0});
  tier_->charge(Bytes{4096}, Bytes{0}, Seconds{1e-6}, 100);
}

TEST_P(TierConformance, HasLanesWhereItHasAQueue) {
  EXPECT_EQ(tier_->lane() != nullptr, tier_->blocks() != nullptr);
}

/// Threads that come and go would each bring an arena of the allocator's, which looks like memory that was
/// not given back. The C library reads this once, when the first thread allocates, so it is said before there
/// is one.
[[maybe_unused]] inline const int kOneArena = mallopt(M_ARENA_MAX, 1);

TEST_P(TierConformance, ClosingGivesEverythingBack) {
  tier_.reset();
  const auto cycle = [&] {
    const auto tier = open_tier(spec()).value();
    TierAccess access(*tier);
    access.write(0, pattern(access.unit(), 1));
  };
  for (int i = 0; i < 3; ++i) cycle();  // thread stacks and allocator arenas come and stay
  const Held before = held_by_process();
  constexpr int kCycles = 20;
  for (int i = 0; i < kCycles; ++i) cycle();
  const Held after = held_by_process();
  EXPECT_EQ(after.files, before.files);
  EXPECT_LT(after.mappings, before.mappings + kCycles / 2);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep freed memory for a while
  EXPECT_LT(after.mapped.count, before.mapped.count + kCycles / 2 * spec().capacity.count);
#endif
  if (!spec().keep) {
    EXPECT_TRUE(folder_.empty());
  }
}

TEST_P(TierConformance, RefusesACapacityOfZero) {
  TierSpec nothing = spec();
  nothing.capacity = Bytes{0};
  const auto tier = open_tier(nothing);
  ASSERT_FALSE(tier);
  EXPECT_EQ(tier.error().code, ErrorCode::invalid_argument);
}

// ---- Block tiers only

class BlockConformance : public TierConformance {
 protected:
  void SetUp() override {
    TierConformance::SetUp();
    if (tier_) {
      ASSERT_NE(tier_->blocks(), nullptr);
    }
  }
  BlockQueue& queue() { return *tier_->blocks(); }
};

TEST_P(BlockConformance, SizesArePowersOfTwoInOrder) {
  EXPECT_TRUE(std::has_single_bit(queue().block_size().count));
  EXPECT_TRUE(std::has_single_bit(queue().memory_alignment().count));
  EXPECT_LE(queue().memory_alignment(), queue().block_size());
  EXPECT_GE(queue().request_size(), queue().block_size());
  EXPECT_EQ(queue().request_size() % queue().block_size(), Bytes{0});
  EXPECT_EQ(tier_->description().capacity % queue().block_size(), Bytes{0});
  EXPECT_GE(queue().depth(), 1u);
}

TEST_P(BlockConformance, GathersAndScattersSeveralPieces) {
  TierAccess access(*tier_);
  const std::size_t block = queue().block_size().count;
  const auto data = pattern(6 * block, 5);
  AlignedMemory memory(8 * block, queue());
  std::copy_n(data.begin(), 2 * block, memory.data() + 5 * block);
  std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(2 * block), block, memory.data());
  std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(3 * block), 3 * block, memory.data() + 2 * block);
  const std::vector<Piece> pieces{
      {memory.data() + 5 * block, 2 * block}, {memory.data(), block}, {memory.data() + 2 * block, 3 * block}};
  ASSERT_EQ(access.transfer(Access::write, 0, pieces), 6 * block);
  EXPECT_EQ(access.read(0, 6 * block), data);

  std::fill_n(memory.data(), 8 * block, std::byte{0});
  ASSERT_EQ(access.transfer(Access::read, 0, pieces), 6 * block);
  EXPECT_TRUE(std::equal(memory.data() + 5 * block, memory.data() + 7 * block, data.begin()));
  EXPECT_TRUE(std::equal(memory.data(), memory.data() + block,
                         data.begin() + static_cast<std::ptrdiff_t>(2 * block)));
}

TEST_P(BlockConformance, CompletesEveryRequestOfAFullQueueOnce) {
  const std::size_t block = queue().block_size().count;
  const unsigned depth = static_cast<unsigned>(std::min<std::uint64_t>(queue().depth(), capacity() / block));
  AlignedMemory memory(depth * block, queue());
  std::vector<Piece> pieces;
  for (unsigned i = 0; i < depth; ++i) pieces.push_back({memory.data() + i * block, block});
  enum class Calls { one_by_one, together };
  const auto run_all = [&](Access access, Calls calls) {
    std::vector<int> seen(depth);
    std::vector<BlockRequest> requests;
    for (unsigned i = 0; i < depth; ++i) requests.push_back({access, i * block, {&pieces[i], 1}, i});
    if (calls == Calls::together) queue().submit_all(requests);
    for (unsigned i = 0; i < depth && calls == Calls::one_by_one; ++i) queue().submit(requests[i]);
    for (unsigned left = depth; left > 0;) {
      BlockCompletion done[7];
      const std::size_t count = calls == Calls::together
                                    ? queue().wait_for(done, std::min<std::size_t>(left, std::size(done)))
                                    : queue().wait(done);
      ASSERT_LE(count, left);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(done[i].result, static_cast<std::int64_t>(block));
        ++seen.at(done[i].tag);
      }
      left -= static_cast<unsigned>(count);
    }
    EXPECT_EQ(seen, std::vector<int>(depth, 1));
  };
  for (const Calls calls : {Calls::one_by_one, Calls::together}) {
    const auto data = pattern(depth * block, calls == Calls::together ? 9 : 10);
    std::copy(data.begin(), data.end(), memory.data());
    run_all(Access::write, calls);
    std::fill_n(memory.data(), depth * block, std::byte{0});
    run_all(Access::read, calls);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.data()));
  }
}

TEST_P(BlockConformance, LanesReachTheSameBytesFromThreadsOfTheirOwn) {
  constexpr std::size_t kThreads = 3;
  const std::size_t block = queue().block_size().count, blocks = capacity() / block / kThreads;
  std::vector<std::vector<std::byte>> written(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        const auto lane = tier_->lane();
        EXPECT_EQ(lane->block_size(), queue().block_size());
        AlignedMemory memory(block, *lane);
        for (std::size_t i = 0; i < std::min<std::size_t>(blocks, 20); ++i) {
          const auto data = pattern(block, thread * 1000 + i);
          std::copy(data.begin(), data.end(), memory.data());
          const Piece piece{memory.data(), block};
          lane->submit({Access::write, (thread * blocks + i) * block, {&piece, 1}, i});
          BlockCompletion done;
          while (lane->wait({&done, 1}) == 0) {
          }
          EXPECT_EQ(done.tag, i);
          EXPECT_EQ(done.result, static_cast<std::int64_t>(block));
          written[thread].insert(written[thread].end(), data.begin(), data.end());
        }
      });
    }
  }
  TierAccess access(*tier_);
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    EXPECT_EQ(access.read(thread * blocks * block, written[thread].size()), written[thread]) << thread;
}

TEST_P(BlockConformance, WakeEndsTheNextWait) {
  queue().wake();
  BlockCompletion done;
  EXPECT_EQ(queue().wait({&done, 1}), 0u);
}

TEST_P(BlockConformance, WakeFromAnotherThreadEndsAWait) {
  BlockCompletion done;
  for (int i = 0; i < 50; ++i) {
    std::jthread other([&] { queue().wake(); });
    ASSERT_EQ(queue().wait({&done, 1}), 0u);
  }
}

TEST_P(BlockConformance, WorksWithRegisteredMemory) {
  const std::size_t block = queue().block_size().count;
  AlignedMemory memory(4 * block, queue());
  queue().register_memory({memory.data(), 4 * block});
  TierAccess access(*tier_);
  const auto data = pattern(2 * block, 4);
  std::copy(data.begin(), data.end(), memory.data());
  const Piece out{memory.data(), 2 * block}, back{memory.data() + 2 * block, 2 * block};
  ASSERT_EQ(access.transfer(Access::write, block, {&out, 1}), 2 * block);
  ASSERT_EQ(access.transfer(Access::read, block, {&back, 1}), 2 * block);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.data() + 2 * block));
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Limits of a disk's rates. What a queue promises holds of a paced one, too: queue_test.cpp.
#include "tiers/paced_queue.hpp"

#include <deque>

#include "queue_fixture.hpp"

namespace terrace {
namespace {
using namespace file_test;
using std::chrono::milliseconds;

constexpr Clock::Time kNow = std::chrono::hours(1);

TEST(PaceLane, GivesTurnsAtTheLimit) {
  PaceLane lane({1e9});
  EXPECT_EQ(lane.reserve(10_MB, kNow), kNow);
  EXPECT_EQ(lane.reserve(20_MB, kNow), kNow + milliseconds(10));
  EXPECT_EQ(lane.reserve(1_MB, kNow), kNow + milliseconds(30));
}

TEST(PaceLane, APauseIsNotSavedUp) {
  PaceLane lane({1e9});
  lane.reserve(10_MB, kNow);
  const Clock::Time later = kNow + milliseconds(100);
  EXPECT_EQ(lane.reserve(10_MB, later), later);
  EXPECT_EQ(lane.reserve(10_MB, later), later + milliseconds(10));
}

TEST(PaceLane, WhoComesALittleLateMakesUpForIt) {
  PaceLane lane({1e9});
  lane.reserve(10_MB, kNow);
  const Clock::Time late = kNow + milliseconds(12);
  EXPECT_EQ(lane.reserve(10_MB, late), late) << "no turn is in the past";
  EXPECT_EQ(lane.reserve(10_MB, late), kNow + milliseconds(20));
}

TEST(PaceLane, WithoutALimitEveryTurnIsNow) {
  PaceLane lane({});
  lane.reserve(1_TiB, kNow);
  EXPECT_EQ(lane.reserve(1_TiB, kNow), kNow);
}

/// Notes when a request arrives and completes it at once.
class NotingQueue final : public BlockQueue {
 public:
  explicit NotingQueue(std::vector<std::pair<std::uint64_t, Clock::Time>>& arrived) : arrived_(arrived) {}
  Bytes block_size() const noexcept override { return 4_KiB; }
  Bytes memory_alignment() const noexcept override { return 512_B; }
  Bytes request_size() const noexcept override { return 4_KiB; }
  unsigned depth() const noexcept override { return 8; }
  bool register_memory(std::span<std::byte>) override { return false; }
  void submit(const BlockRequest& request) override {
    arrived_.emplace_back(request.tag, steady_clock().now());
    const std::lock_guard lock(mutex_);
    done_.push_back({request.tag, 0});
  }
  std::size_t wait(std::span<BlockCompletion> completions) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return woken_ || !done_.empty(); });
    woken_ = false;
    if (done_.empty()) return 0;
    completions[0] = done_.front();
    done_.pop_front();
    return 1;
  }
  void wake() override {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_one();
  }

 private:
  std::vector<std::pair<std::uint64_t, Clock::Time>>& arrived_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<BlockCompletion> done_;
  bool woken_ = false;
};

/// What the queue above would lead to.
BlockFile noted_file() {
  BlockFile file;
  file.capacity = 1_MiB;
  file.block_size = 4_KiB;
  file.memory_alignment = 512_B;
  return file;
}

std::shared_ptr<SharedPace> limited(BytesPerSecond read, BytesPerSecond write) {
  return std::make_shared<SharedPace>(PaceLimits{read, write});
}

TEST(PacedQueue, QueuesToOneDiskShareItsLimits) {
  const auto both = limited({}, {1e8});
  const Clock::Time start = steady_clock().now();
  EXPECT_EQ(both->reserve(Access::write, Bytes{10'000'000}, start), start);
  EXPECT_EQ(both->reserve(Access::write, Bytes{10'000'000}, start), start + milliseconds(100));
  EXPECT_EQ(both->reserve(Access::read, Bytes{10'000'000}, start), start);
}

TEST(PacedQueue, HandsRequestsOverInTheirTurnAndReadsPassWrites) {
  std::vector<std::pair<std::uint64_t, Clock::Time>> arrived;
  const auto queue = pace(std::make_unique<NotingQueue>(arrived), noted_file(), limited({}, {1e8}));
  Memory memory(1 << 20);
  const Piece piece{memory.data(), 1 << 20};
  const Clock::Time start = steady_clock().now();
  for (std::uint64_t tag = 0; tag < 4; ++tag) queue->submit({Access::write, 0, {&piece, 1}, tag});
  queue->submit({Access::read, 0, {&piece, 1}, 9});
  ASSERT_GE(arrived.size(), 2U);
  EXPECT_EQ(arrived[1].first, 9U) << "no limit, no waiting";
  for (std::size_t done = 0; done < 5;) {
    BlockCompletion completion;
    const std::size_t count = queue->wait({&completion, 1});
    ASSERT_EQ(count, 1U) << "nobody called wake()";
    done += count;
  }
  for (std::size_t i = 2; i < 5; ++i) {
    EXPECT_EQ(arrived[i].first, i - 1);
    // 1 MiB takes 10.5 ms.
    EXPECT_GE(arrived[i].second - start, (i - 1) * milliseconds(10));
  }
}

TEST(PacedQueue, WakesWhoWaitsForNothing) {
  std::vector<std::pair<std::uint64_t, Clock::Time>> arrived;
  const auto queue = pace(std::make_unique<NotingQueue>(arrived), noted_file(), limited({1e8}, {1e8}));
  queue->wake();
  BlockCompletion completion;
  EXPECT_EQ(queue->wait({&completion, 1}), 0U);
}

}  // namespace
}  // namespace terrace

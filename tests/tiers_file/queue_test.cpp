// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "queue_fixture.hpp"

namespace terrace {
namespace {
using namespace file_test;

using Queue = QueueTest;

TEST_P(Queue, ReadsBackWhatItWrote) {
  Memory written(kCapacity), read_back(kCapacity, std::byte{1});
  written.randomise(1);
  EXPECT_EQ(write(0, written.span()), std::int64_t{kCapacity});
  EXPECT_EQ(read(0, read_back.span()), std::int64_t{kCapacity});
  EXPECT_TRUE(std::ranges::equal(written.span(), read_back.span()));
}

TEST_P(Queue, GathersAndScattersPieces) {
  Memory memory(8 * kBlock), whole(4 * kBlock);
  memory.randomise(2);
  const std::array gathered{Piece{memory.data() + 6 * kBlock, 2 * kBlock}, Piece{memory.data(), kBlock},
                            Piece{memory.data() + 3 * kBlock, kBlock}};
  EXPECT_EQ(transfer(*queue_, Access::write, 2 * kBlock, gathered), std::int64_t{4 * kBlock});
  EXPECT_EQ(read(2 * kBlock, whole.span()), std::int64_t{4 * kBlock});
  EXPECT_TRUE(std::equal(whole.data(), whole.data() + 2 * kBlock, memory.data() + 6 * kBlock));
  EXPECT_TRUE(std::equal(whole.data() + 2 * kBlock, whole.data() + 3 * kBlock, memory.data()));
  EXPECT_TRUE(std::equal(whole.data() + 3 * kBlock, whole.data() + 4 * kBlock, memory.data() + 3 * kBlock));
}

TEST_P(Queue, TakesMorePiecesThanOneCallDoesAndReportsAShortResult) {
  file_.block_size = Bytes{512};
  reopen();
  Memory memory(2000 * 512);
  std::vector<Piece> pieces;
  for (int i = 0; i < 2000; ++i) pieces.push_back({memory.data() + i * 512, 512});
  const std::int64_t done = transfer(*queue_, Access::write, 0, pieces);
  EXPECT_GT(done, 0);
  EXPECT_LT(done, 2000 * 512);
  EXPECT_EQ(done % 512, 0);
}

TEST_P(Queue, WakeFromAnotherThreadEndsAWaitWithNothing) {
  std::atomic<int> returned = 0;
  std::thread waiter([&] {
    BlockCompletion completion;
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(queue_->wait({&completion, 1}), 0u);
      returned.store(i + 1);
    }
  });
  for (int i = 0; i < 100; ++i) {
    queue_->wake();
    while (returned.load() == i) std::this_thread::yield();
  }
  waiter.join();
}

TEST_P(Queue, WakeBeforeAWaitIsNotLost) {
  queue_->wake();
  BlockCompletion completion;
  EXPECT_EQ(queue_->wait({&completion, 1}), 0u);
}

TEST_P(Queue, WakesWhileRequestsAreInFlightLoseNoCompletion) {
  std::atomic<bool> stop = false;
  std::thread waker([&] {
    while (!stop.load()) queue_->wake();
  });
  Memory memory(kBlock);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(write((i % 256) * kBlock, memory.span()), std::int64_t{kBlock});
  stop.store(true);
  waker.join();
}

TEST_P(Queue, MayBeHandedFromThreadToThread) {
  Memory memory(kBlock, std::byte{1});
  for (int i = 0; i < 5; ++i) {
    std::thread([&] { EXPECT_EQ(write(i * kBlock, memory.span()), std::int64_t{kBlock}); }).join();
  }
  queue_->wake();
  BlockCompletion completion;
  EXPECT_EQ(queue_->wait({&completion, 1}), 0u);
}

TEST_P(Queue, ReportsTheSystemsErrorAsACompletion) {
  const int read_only = open((folder_ / "data").c_str(), O_RDONLY);
  const int writable = std::exchange(file_.descriptor, read_only);
  reopen();
  Memory memory(kBlock);
  EXPECT_EQ(write(0, memory.span()), -EBADF);
  queue_.reset();
  close(writable);
}

TEST_P(Queue, ReportsReadsBeyondTheFilesEndAsShort) {
  ASSERT_EQ(ftruncate(file_.descriptor, 3 * kBlock), 0);
  Memory memory(4 * kBlock);
  EXPECT_EQ(read(kBlock, memory.span()), std::int64_t{2 * kBlock});
  EXPECT_EQ(read(3 * kBlock, memory.span()), 0);
}

TEST_P(Queue, CompletesWhatIsInFlightBeforeItEnds) {
  Memory written(kCapacity), read_back(kCapacity);
  written.randomise(10);
  std::array<Piece, 8> pieces;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    pieces[i] = {written.data() + i * kCapacity / 8, kCapacity / 8};
    queue_->submit({Access::write, i * kCapacity / 8, {&pieces[i], 1}, i});
  }
  reopen();
  EXPECT_EQ(read(0, read_back.span()), std::int64_t{kCapacity});
  EXPECT_TRUE(std::ranges::equal(written.span(), read_back.span()));
}

TEST_P(Queue, TakesRequestsThatBreakItsRulesForBugs) {
  Memory memory(2 * kBlock);
  const auto submit = [&](std::uint64_t offset, Piece piece) {
    queue_->submit({Access::read, offset, {&piece, 1}, 0});
  };
  EXPECT_THROW(submit(100, {memory.data(), kBlock}), std::logic_error);
  EXPECT_THROW(submit(0, {memory.data() + 100, kBlock}), std::logic_error);
  EXPECT_THROW(submit(0, {memory.data(), 100}), std::logic_error);
  EXPECT_THROW(submit(0, {memory.data(), 0}), std::logic_error);
  EXPECT_THROW(submit(kCapacity, {memory.data(), kBlock}), std::logic_error);
  EXPECT_THROW(submit(2 * kCapacity, {memory.data(), kBlock}), std::logic_error);
  EXPECT_THROW(queue_->submit({Access::read, 0, {}, 0}), std::logic_error);
  EXPECT_THROW(queue_->wait({}), std::logic_error);
}

TEST_P(Queue, TakesMoreThanItsDepthForABug) {
  Memory memory(kBlock);
  const Piece piece{memory.data(), kBlock};
  for (unsigned i = 0; i < queue_->depth(); ++i) queue_->submit({Access::read, 0, {&piece, 1}, i});
  EXPECT_THROW(queue_->submit({Access::read, 0, {&piece, 1}, 99}), std::logic_error);
  queue_.reset();  // before the memory it reads into
}

TEST(BlockFile, WritesThroughThePageCacheWaitForTheDisk) {
  BlockFile file;
  EXPECT_EQ(request_flags(file, Access::write), 0);
  file.durability = Durability::synced;
  EXPECT_EQ(request_flags(file, Access::write), RWF_DSYNC);
  EXPECT_EQ(request_flags(file, Access::read), 0);
}

INSTANTIATE_TEST_SUITE_P(All, Queue, kVariants, name_of);

}  // namespace
}  // namespace terrace

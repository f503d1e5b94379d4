// SPDX-License-Identifier: Apache-2.0
// What goes first, and how many at once.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "test_tiers.hpp"

namespace terrace {
namespace {
using namespace terrace::testing;
using namespace literals;

TEST(Priorities, OrderTheCopiesOfMemory) {
  WatchedMemory from(1_MiB, 1), to(1_MiB, 1);
  std::vector<std::uint64_t> order;
  to.on_pace = [&](Access, Bytes amount) { order.push_back(amount.count); };
  Gate all_started;
  Mover mover({&from, &to},
              {.helpers = 1, .chunk = 1_KiB, .before_chunk = [&](unsigned) { all_started.wait(); }});
  std::vector<Transfer> transfers;
  transfers.push_back(mover.start({exact(0, 0, 1, 0, 100)}, Priority::background));
  transfers.push_back(mover.start({exact(0, 0, 1, 0, 200)}, Priority::normal));
  transfers.push_back(mover.start({exact(0, 0, 1, 0, 300)}, Priority::urgent));
  transfers.push_back(mover.start({exact(0, 0, 1, 0, 101)}, Priority::background));
  transfers.push_back(mover.start({exact(0, 0, 1, 0, 301)}, Priority::urgent));
  all_started.open();
  while (!transfers[3].done()) std::this_thread::yield();
  EXPECT_EQ(order, (std::vector<std::uint64_t>{300, 301, 200, 100, 101}));
}

TEST(Priorities, LetATransferThatIsWaitedForOvertakeInMemory) {
  Rig rig;
  rig.fake_at(Rig::kFake).delay(Seconds{0.02});
  Mover mover(rig.tiers, {.helpers = 1, .chunk = 1_KiB});
  Transfer background = mover.start({exact(Rig::kDram, 0, Rig::kFake, 0, 200 * kKiB)});
  Transfer wanted = mover.start({exact(Rig::kDram, 0, Rig::kFake, 200 * kKiB, 1000)});
  wanted.wait();
  EXPECT_FALSE(background.done());
  rig.fake_at(Rig::kFake).heal();
}

TEST(Priorities, LetATransferThatIsWaitedForOvertakeOnADisk) {
  Rig rig(2_MiB);
  rig.fake_at(Rig::kBlocks).delay(Seconds{0.05});
  Mover mover(rig.tiers);
  Transfer background = mover.start({exact(Rig::kBlocks, 0, Rig::kDram, 0, 1 * kMiB)});
  Transfer wanted = mover.start({exact(Rig::kBlocks, 0, Rig::kDram, 1 * kMiB, 512)});
  wanted.wait();
  EXPECT_FALSE(background.done());
  EXPECT_LT(mover.statistics({Rig::kBlocks}, {Rig::kDram}).bytes, 512_KiB);
  rig.fake_at(Rig::kBlocks).heal();
}

TEST(Priorities, LetATransferThatIsWaitedForOvertakeFromDiskToDisk) {
  Rig rig(2_MiB);
  rig.fake_at(Rig::kBlocks2).delay(Seconds{0.05});
  Mover mover(rig.tiers, {.bounce = 256_KiB});
  Transfer background = mover.start({exact(Rig::kBlocks2, 0, Rig::kBlocks, 0, 2 * kMiB - 4096)});
  Transfer wanted = mover.start({exact(Rig::kBlocks2, 0, Rig::kBlocks, 2 * kMiB - 4096, 512)});
  wanted.wait();
  EXPECT_FALSE(background.done());
  EXPECT_LT(mover.statistics({Rig::kBlocks2}, {Rig::kBlocks}).bytes, 1_MiB);
  rig.fake_at(Rig::kBlocks2).heal();
}

TEST(Disk, TakesReadsAndWritesInTurnAndUrgentOnesFirst) {
  WatchedBlocks disk("fake:256KiB,blocks");
  WatchedMemory memory(256_KiB, 1);
  Gate& gate = disk.gates[0];
  {
    Mover mover({&memory, &disk});
    const std::uint64_t request = 8192;  // of the fake queue
    auto held = mover.start({exact(0, 0, 1, 0, 512)});
    gate.wait_until_reached();  // with that request; everything else is ordered behind it
    auto reads = mover.start({exact(1, request, 0, request, 3 * request)});
    auto writes = mover.start({exact(0, 8 * request, 1, 8 * request, 3 * request)});
    auto urgent = mover.start({exact(0, 20 * request, 1, 20 * request, 512)}, Priority::urgent);
    gate.open();
    // Not waited for: that would make them urgent too.
    while (!reads.done() || !writes.done() || !held.done() || !urgent.done()) std::this_thread::yield();
  }
  std::vector<std::uint64_t> order;
  for (const auto& seen : disk.seen()) order.push_back(seen.offset / 8192);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 20, 1, 8, 2, 9, 3, 10}));
}

// Counts how many are inside at once, and holds each until another is there too (or has had ample time).
struct Crowd {
  void enter(unsigned wanted) {
    std::unique_lock lock(mutex);
    most = std::max(most, ++inside);
    changed.notify_all();
    changed.wait_for(lock, std::chrono::milliseconds(patience), [&] { return most >= wanted; });
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    --inside;
  }
  std::mutex mutex;
  std::condition_variable changed;
  unsigned inside = 0, most = 0;
  int patience = 5000;
};

TEST(WriteThreads, LimitWhoCopiesIntoATierAtOnce) {
  WatchedMemory from(1_MiB, 1), other(1_MiB, 1), to(1_MiB, 2);
  Crowd crowd;
  to.on_pace = [&](Access access, Bytes) {
    if (access == Access::write) crowd.enter(2);
  };
  Mover mover({&from, &to, &other}, {.helpers = 4, .chunk = 4_KiB});
  std::vector<std::thread> waiters;
  for (std::uint64_t i = 0; i < 4; ++i) {
    waiters.emplace_back([&, i] {
      const std::uint64_t part = 256 * kKiB;
      mover.move({exact(i % 2 == 0 ? 0 : 2, i * part, 1, i * part, part)});
    });
  }
  for (auto& waiter : waiters) waiter.join();
  EXPECT_EQ(crowd.most, 2u);
}

TEST(WriteThreads, OfOneTierLeaveTheOthersAlone) {
  WatchedMemory from(1_MiB, 1), first(1_MiB, 1), second(1_MiB, 1);
  Crowd crowd;
  const auto enter = [&](Access access, Bytes) {
    if (access == Access::write) crowd.enter(2);
  };
  first.on_pace = enter;
  second.on_pace = enter;
  Mover mover({&from, &first, &second}, {.helpers = 2, .chunk = 4_KiB});
  auto a = mover.start({exact(0, 0, 1, 0, 64 * kKiB)});
  auto b = mover.start({exact(0, 0, 2, 0, 64 * kKiB)});
  while (!a.done() || !b.done()) std::this_thread::yield();
  EXPECT_EQ(crowd.most, 2u);
}

}  // namespace
}  // namespace terrace

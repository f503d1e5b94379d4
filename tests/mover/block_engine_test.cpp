// SPDX-License-Identifier: Apache-2.0
#include "mover/block_engine.hpp"

#include <gtest/gtest.h>

#include <array>

#include "test_tiers.hpp"

namespace terrace {
namespace {
using namespace terrace::testing;
using namespace literals;

struct Task final : DiskTask {
  Task(Ticket& the_ticket, std::byte* memory, std::uint64_t offset, std::uint64_t bytes)
      : DiskTask(the_ticket, Access::read, nullptr, {{memory, offset, bytes, bytes}}) {}
  void moved(Bytes) noexcept override {}
  void finished(bool) noexcept override { ticket().close(); }
};

TEST(BlockEngine, PromotesATaskThatWaitsInItsQueue) {
  WatchedBlocks disk("fake:256KiB,blocks");
  Gate& first = disk.gates[0];
  Gate& second = disk.gates[1];
  alignas(4096) static std::array<std::byte, 256 * kKiB> memory;
  BufferPool pool({memory.data() + 248 * kKiB, 8 * kKiB}, 8 * kKiB);
  const std::uint64_t request = 8 * kKiB;  // of the fake queue
  Ticket held(Priority::background, 1), long_one(Priority::background, 1), wanted(Priority::background, 1);
  {
    BlockEngine engine(disk, pool, memory.data());
    engine.start(std::make_shared<Task>(held, memory.data(), 0, request));
    first.wait_until_reached();
    engine.start(std::make_shared<Task>(long_one, memory.data() + request, request, 3 * request));
    engine.start(std::make_shared<Task>(wanted, memory.data() + 9 * request, 9 * request, request));
    first.open();
    second.wait_until_reached();  // with the long one's first request; both stand in the queue
    wanted.raise();
    engine.raise();
    second.open();
    held.wait();
    long_one.wait();
    wanted.wait();
  }
  std::vector<std::uint64_t> order;
  for (const auto& seen : disk.seen()) order.push_back(seen.offset / request);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 9, 2, 3}));
}

/// Whoever starts a transfer on an idle disk is not preempted by the thread that it wakes; a completion is
/// served at once.
TEST(BlockEngine, WaitsInTheBackgroundOnlyWhileTheDiskIsIdle) {
  WatchedBlocks disk("fake:256KiB,blocks");
  alignas(4096) static std::array<std::byte, 64 * kKiB> memory;
  BufferPool pool({memory.data() + 56 * kKiB, 8 * kKiB}, 8 * kKiB);
  {
    BlockEngine engine(disk, pool, memory.data());
    disk.await_waits(1);
    Ticket ticket(Priority::background, 1);
    engine.start(std::make_shared<Task>(ticket, memory.data(), 0, 8 * kKiB));
    ticket.wait();
    disk.await_waits(3);
  }
  using Waits = std::vector<WatchedBlocks::Waited>;
  EXPECT_EQ(disk.waits(), (Waits{{false, SCHED_BATCH}, {true, SCHED_OTHER}, {false, SCHED_BATCH}}));
}

}  // namespace
}  // namespace terrace

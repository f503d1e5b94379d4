// SPDX-License-Identifier: Apache-2.0
#include "queue_fixture.hpp"

namespace terrace {
namespace {
using namespace file_test;

using QueueStress = QueueTest;

// Every block carries what was last written to it; requests in flight never touch the same blocks.
TEST_P(QueueStress, ManyInFlightKeepTheirBytesApart) {
  constexpr std::size_t kBlocks = kCapacity / kBlock, kLongest = 16;
  struct Flight {
    explicit Flight() : memory(kLongest * kBlock) {}
    Memory memory;
    Piece piece;
    std::size_t first = 0, count = 0;
    Access access = Access::read;
    bool busy = false;
  };
  std::vector<Flight> flights(queue_->depth());
  for (std::size_t i = 0; i < flights.size(); i += 2) queue_->register_memory(flights[i].memory.span());
  std::vector<std::byte> shadow(kBlocks, std::byte{0});
  std::vector<bool> in_use(kBlocks, false);
  std::mt19937_64 random(9);
  int reads = 0, writes = 0, most_at_once = 0, at_once = 0;

  const auto start = [&](std::size_t index) {
    Flight& flight = flights[index];
    flight.count = 1 + random() % kLongest;
    flight.first = random() % (kBlocks - flight.count + 1);
    for (std::size_t i = 0; i < flight.count; ++i) {
      if (in_use[flight.first + i]) return;
    }
    flight.access = random() % 2 ? Access::read : Access::write;
    ++(flight.access == Access::read ? reads : writes);
    for (std::size_t i = 0; i < flight.count; ++i) {
      in_use[flight.first + i] = true;
      const auto value = static_cast<std::byte>(random());
      if (flight.access == Access::write) shadow[flight.first + i] = value;
      std::fill_n(flight.memory.data() + i * kBlock, kBlock, value);
    }
    flight.piece = {flight.memory.data(), flight.count * kBlock};
    flight.busy = true;
    most_at_once = std::max(most_at_once, ++at_once);
    queue_->submit({flight.access, flight.first * kBlock, {&flight.piece, 1}, index});
  };
  const auto finish = [&](const BlockCompletion& completion) {
    Flight& flight = flights.at(completion.tag);
    ASSERT_TRUE(flight.busy);
    ASSERT_EQ(completion.result, static_cast<std::int64_t>(flight.piece.bytes));
    for (std::size_t i = 0; i < flight.count; ++i) {
      in_use[flight.first + i] = false;
      ASSERT_TRUE(all(flight.memory.span().subspan(i * kBlock, kBlock), shadow[flight.first + i]));
    }
    flight.busy = false;
    --at_once;
  };

  std::array<BlockCompletion, 3> completions;
  for (int round = 0; round < 1000 || at_once > 0; ++round) {
    for (std::size_t i = 0; i < flights.size() && round < 1000; ++i) {
      if (!flights[i].busy) start(i);
    }
    if (at_once == 0) continue;
    const std::size_t count = queue_->wait(completions);
    ASSERT_GT(count, 0u) << "nobody woke it";
    for (std::size_t i = 0; i < count; ++i) ASSERT_NO_FATAL_FAILURE(finish(completions[i]));
  }
  EXPECT_GT(reads, 300);
  EXPECT_GT(writes, 300);
  EXPECT_EQ(most_at_once, static_cast<int>(queue_->depth()));
}

INSTANTIATE_TEST_SUITE_P(All, QueueStress, kVariants, name_of);

}  // namespace
}  // namespace terrace

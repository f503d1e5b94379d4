// SPDX-License-Identifier: Apache-2.0
#include "tiers/fake.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include "terrace/error.hpp"

namespace terrace {
namespace {
using namespace literals;
using Fault = FakeTier::Fault;

std::unique_ptr<FakeTier> fake(const char* spec) { return make_fake_tier(parse_tier_spec(spec).value()); }

int cause_of_pace(FakeTier& tier, Access access) {
  try {
    tier.pace(access, 64_B, Seconds{0});
    return 0;
  } catch (const EnvironmentError& error) {
    EXPECT_EQ(error.place().tier, tier.description().name);
    return error.place().cause;
  }
}

TEST(FakeAddressable, FailsTheNthOperationOnce) {
  const auto tier = fake("fake:1MiB");
  tier->fail(2, Fault::no_space);
  tier->fail(3, Fault::short_transfer);
  EXPECT_EQ(cause_of_pace(*tier, Access::read), 0);
  EXPECT_EQ(cause_of_pace(*tier, Access::read), ENOSPC);
  EXPECT_EQ(cause_of_pace(*tier, Access::read), EIO);
  EXPECT_EQ(cause_of_pace(*tier, Access::read), 0);
  EXPECT_EQ(tier->operations(), 4u);
}

TEST(FakeAddressable, CountsOnlyTheGivenAccess) {
  const auto tier = fake("fake:1MiB");
  tier->fail(2, Fault::io_error, Access::write);
  EXPECT_EQ(cause_of_pace(*tier, Access::write), 0);
  EXPECT_EQ(cause_of_pace(*tier, Access::read), 0);
  EXPECT_EQ(cause_of_pace(*tier, Access::read), 0);
  EXPECT_EQ(cause_of_pace(*tier, Access::write), EIO);
}

TEST(FakeAddressable, FailsRandomlyAtTheGivenRateUntilHealed) {
  const auto tier = fake("fake:1MiB");
  tier->fail_randomly(0.25, Fault::io_error, 7);
  int failures = 0;
  for (int i = 0; i < 2000; ++i) failures += cause_of_pace(*tier, Access::read) != 0;
  EXPECT_NEAR(failures, 500, 80);
  tier->heal();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(cause_of_pace(*tier, Access::read), 0);
}

TEST(FakeAddressable, HealForgetsPendingFaults) {
  const auto tier = fake("fake:1MiB");
  tier->fail(1, Fault::io_error);
  tier->heal();
  EXPECT_EQ(cause_of_pace(*tier, Access::read), 0);
}

class FakeBlocks : public testing::Test {
 protected:
  static constexpr std::size_t kBlock = 512;

  std::byte* block(std::size_t i) { return memory_.bytes + i * kBlock; }

  std::int64_t transfer(Access access, std::uint64_t offset, std::span<const Piece> pieces) {
    queue().submit({access, offset, pieces, 9});
    BlockCompletion done;
    EXPECT_EQ(queue().wait({&done, 1}), 1u);
    EXPECT_EQ(done.tag, 9u);
    return done.result;
  }

  BlockQueue& queue() { return *tier_->blocks(); }

  struct alignas(64) Memory {
    std::byte bytes[64 * kBlock];
  };
  Memory memory_{};
  std::unique_ptr<FakeTier> tier_ = fake("fake:64KiB,blocks");
};

TEST_F(FakeBlocks, ReportsEachFaultAsACompletion) {
  const Piece four{block(0), 4 * kBlock};
  tier_->fail(1, Fault::io_error);
  tier_->fail(2, Fault::no_space);
  tier_->fail(3, Fault::short_transfer);
  tier_->fail(4, Fault::no_progress);
  EXPECT_EQ(transfer(Access::write, 0, {&four, 1}), -EIO);
  EXPECT_EQ(transfer(Access::write, 0, {&four, 1}), -ENOSPC);
  EXPECT_EQ(transfer(Access::write, 0, {&four, 1}), 2 * std::int64_t{kBlock});
  EXPECT_EQ(transfer(Access::write, 0, {&four, 1}), 0);
  EXPECT_EQ(transfer(Access::write, 0, {&four, 1}), 4 * std::int64_t{kBlock});
}

TEST_F(FakeBlocks, AShortWriteWritesExactlyWhatItReports) {
  std::memset(block(0), 1, 4 * kBlock);
  const Piece parts[] = {{block(0), kBlock}, {block(1), 2 * kBlock}, {block(3), kBlock}};
  const Piece back{block(8), 4 * kBlock};
  tier_->fail(1, Fault::short_transfer);
  EXPECT_EQ(transfer(Access::write, kBlock, parts), 2 * std::int64_t{kBlock});
  transfer(Access::read, kBlock, {&back, 1});
  EXPECT_EQ(std::memcmp(block(8), block(0), 2 * kBlock), 0);
  EXPECT_EQ(block(10)[0], std::byte{0});
}

TEST_F(FakeBlocks, DeliversOutOfOrder) {
  std::map<std::vector<std::uint64_t>, int> orders;
  for (int round = 0; round < 100; ++round) {
    const Piece piece{block(0), kBlock};
    for (std::uint64_t tag = 0; tag < 3; ++tag) queue().submit({Access::read, 0, {&piece, 1}, tag});
    std::vector<std::uint64_t> order;
    while (order.size() < 3) {
      BlockCompletion done[2];
      const std::size_t count = queue().wait(done);
      for (std::size_t i = 0; i < count; ++i) order.push_back(done[i].tag);
    }
    ++orders[order];
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST_F(FakeBlocks, HoldsBackAllCompletionsWhileDelayed) {
  tier_->delay(Seconds{3600});
  const Piece piece{block(0), kBlock};
  queue().submit({Access::read, 0, {&piece, 1}, 0});
  queue().wake();
  BlockCompletion done;
  EXPECT_EQ(queue().wait({&done, 1}), 0u);
}

TEST_F(FakeBlocks, RefusesRequestsThatBreakTheContract) {
  const auto refused = [&](std::uint64_t offset, Piece piece) {
    EXPECT_THROW(queue().submit({Access::read, offset, {&piece, 1}, 0}), std::logic_error)
        << offset << " " << piece.bytes;
  };
  refused(1, {block(0), kBlock});
  refused(0, {block(0) + 8, kBlock});
  refused(0, {block(0), kBlock - 64});
  refused(0, {block(0), 0});
  refused(0, {nullptr, kBlock});
  refused(Bytes{64_KiB}.count, {block(0), kBlock});
  refused(Bytes{64_KiB}.count - kBlock, {block(0), 2 * kBlock});
  refused(~std::uint64_t{511}, {block(0), kBlock});
  EXPECT_EQ(tier_->operations(), 0u);
}

TEST_F(FakeBlocks, RefusesMoreThanDepthInFlight) {
  const Piece piece{block(0), kBlock};
  for (unsigned i = 0; i < queue().depth(); ++i) queue().submit({Access::read, 0, {&piece, 1}, i});
  EXPECT_THROW(queue().submit({Access::read, 0, {&piece, 1}, 99}), std::logic_error);
}

TEST(Fake, RefusesToBeMadeFromAnotherKind) {
  EXPECT_THROW(fake("dram:1MiB"), std::logic_error);
  EXPECT_THROW(fake("fake:100B,blocks"), ResultError);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// The life of a transfer, what must hold before one, and what is counted.
#include <gtest/gtest.h>

#include "terrace/error.hpp"
#include "test_tiers.hpp"

namespace terrace {
namespace {
using namespace terrace::testing;
using namespace literals;

TEST(Transfer, OfNothingIsComplete) {
  Rig rig;
  Mover mover(rig.tiers);
  auto no_moves = mover.start({});
  EXPECT_TRUE(no_moves.done());
  EXPECT_NO_THROW(no_moves.wait());
  auto no_bytes = mover.start({exact(Rig::kDram, 0, Rig::kBlocks, 0, 0)});
  EXPECT_TRUE(no_bytes.done());
  EXPECT_EQ(mover.statistics({Rig::kDram}, {Rig::kBlocks}).transfers, 0u);
}

TEST(Transfer, ThatIsEmptyOrMovedFromHasNothingToWaitFor) {
  Transfer empty;
  EXPECT_FALSE(empty.valid());
  EXPECT_TRUE(empty.done());
  EXPECT_NO_THROW(empty.wait());
  Rig rig;
  Mover mover(rig.tiers);
  Transfer first = mover.start({exact(Rig::kDram, 0, Rig::kBlocks, 0, 5000)});
  Transfer second = std::move(first);
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move)
  EXPECT_NO_THROW(first.wait());
  EXPECT_TRUE(second.valid());
  EXPECT_NO_THROW(second.wait());
  EXPECT_NO_THROW(second.wait());
}

TEST(Transfer, IsCompleteWhenDropped) {
  for (const std::uint32_t to : {Rig::kDram2, Rig::kFake, Rig::kBlocks, Rig::kBlocks2}) {
    Rig rig;
    const Move move = exact(Rig::kDram, 3, to, 5, 200000);
    {
      Mover mover(rig.tiers, {.chunk = 4_KiB});
      { auto dropped = mover.start({move}); }
      const auto counted = mover.statistics({Rig::kDram}, {to});
      EXPECT_EQ(counted.transfers, 1u);
      EXPECT_EQ(counted.bytes, 200000_B);
    }
    rig.apply(move);
    EXPECT_EQ(rig.first_wrong(), -1);
  }
}

TEST(Transfer, IsCompleteWhenAssignedOver) {
  Rig rig;
  Mover mover(rig.tiers, {.helpers = 0});
  Transfer transfer = mover.start({exact(Rig::kDram, 0, Rig::kDram2, 0, 200000)});
  transfer = Transfer();
  EXPECT_EQ(mover.statistics({Rig::kDram}, {Rig::kDram2}).transfers, 1u);
}

TEST(Transfer, TellsItsErrorEachTimeItIsWaitedFor) {
  Rig rig;
  Mover mover(rig.tiers);
  rig.fake_at(Rig::kBlocks).fail(1, FakeTier::Fault::io_error);
  auto transfer = mover.start({exact(Rig::kDram, 0, Rig::kBlocks, 0, 5120)});
  EXPECT_THROW(transfer.wait(), EnvironmentError);
  EXPECT_TRUE(transfer.done());
  EXPECT_THROW(transfer.wait(), EnvironmentError);
}

TEST(Start, RefusesMovesThatCannotBe) {
  Rig rig;
  Mover mover(rig.tiers);
  const auto end = rig.shadow[0].size();
  EXPECT_THROW(mover.start({exact(Rig::kTiers, 0, Rig::kDram, 0, 1)}), std::logic_error);
  EXPECT_THROW(mover.start({exact(Rig::kDram, 0, Rig::kTiers, 0, 1)}), std::logic_error);
  EXPECT_THROW(mover.start({exact(Rig::kDram, end, Rig::kDram2, 0, 1)}), std::logic_error);
  EXPECT_THROW(mover.start({exact(Rig::kDram, 0, Rig::kBlocks, end - 1, 2)}), std::logic_error);
  EXPECT_THROW(mover.start({exact(Rig::kDram, ~std::uint64_t{0}, Rig::kBlocks, 0, 2)}), std::logic_error);
  EXPECT_THROW(mover.start({exact(Rig::kDram, 0, Rig::kDram, 99, 100)}), std::logic_error);
  EXPECT_THROW(mover.start({exact(Rig::kBlocks, 99, Rig::kBlocks, 0, 100)}), std::logic_error);
  Move small = exact(Rig::kDram, 0, Rig::kDram2, 0, 100);
  small.to.bytes = {99};
  EXPECT_THROW(mover.start({small}), std::logic_error);
  EXPECT_EQ(mover.statistics({Rig::kDram}, {Rig::kDram2}).failures, 0u);
  EXPECT_NO_THROW(mover.move({exact(Rig::kDram, 0, Rig::kDram, 100, 100)}));
}

TEST(Bounce, IsHeldOnlyForBlockTiersAndWithinItsLimit) {
  Rig rig;
  Mover memory_only({rig.tiers[Rig::kDram], rig.tiers[Rig::kDram2]});
  EXPECT_EQ(memory_only.bounce_bytes(), 0_B);
  Mover with_disks(rig.tiers, {.bounce = 1_MiB});
  EXPECT_GT(with_disks.bounce_bytes(), 0_B);
  EXPECT_LE(with_disks.bounce_bytes(), 1_MiB);
}

TEST(Bounce, OfTheLeastSizeStillServesEveryPair) {
  Rig rig;
  const Bytes least = 6 * 4_KiB;
  EXPECT_THROW(Mover(rig.tiers, {.bounce = least - 1_B}), std::logic_error);
  std::vector<Move> moves;
  for (std::uint32_t from = 0; from < Rig::kTiers; ++from) {
    for (std::uint32_t to = 0; to < Rig::kTiers; ++to) {
      moves.push_back(exact(from, 77, to, 128 * kKiB + 25001 * from, 25001));
    }
  }
  {
    Mover mover(rig.tiers, {.bounce = least});
    mover.move(moves);
  }
  for (const Move& move : moves) rig.apply(move);
  EXPECT_EQ(rig.first_wrong(), -1);
}

TEST(Statistics, CountEachLinkAlone) {
  Rig rig;
  Mover mover(rig.tiers);
  mover.move({exact(Rig::kDram, 0, Rig::kDram2, 0, 1000), exact(Rig::kDram, 5000, Rig::kDram2, 5000, 24),
              exact(Rig::kDram, 0, Rig::kBlocks, 0, 512), exact(Rig::kBlocks, 0, Rig::kBlocks2, 0, 100)});
  mover.move({exact(Rig::kDram, 0, Rig::kDram2, 0, 1000)});
  const auto memory = mover.statistics({Rig::kDram}, {Rig::kDram2});
  EXPECT_EQ(memory.bytes, 2024_B);
  EXPECT_EQ(memory.transfers, 2u);
  EXPECT_EQ(memory.failures, 0u);
  EXPECT_GT(memory.busy.count(), 0);
  EXPECT_EQ(mover.statistics({Rig::kDram}, {Rig::kBlocks}).bytes, 512_B);
  EXPECT_EQ(mover.statistics({Rig::kBlocks}, {Rig::kBlocks2}).bytes, 100_B);
  EXPECT_EQ(mover.statistics({Rig::kBlocks2}, {Rig::kBlocks}).bytes, 0_B);
  EXPECT_EQ(mover.statistics({Rig::kBlocks2}, {Rig::kBlocks}).busy.count(), 0);
}

TEST(Statistics, CountFailures) {
  Rig rig;
  Mover mover(rig.tiers);
  rig.fake_at(Rig::kFake).fail(1, FakeTier::Fault::io_error);
  EXPECT_THROW(mover.move({exact(Rig::kDram, 0, Rig::kFake, 0, 1000)}), EnvironmentError);
  const auto counted = mover.statistics({Rig::kDram}, {Rig::kFake});
  EXPECT_EQ(counted.failures, 1u);
  EXPECT_EQ(counted.transfers, 0u);
  EXPECT_EQ(counted.bytes, 0_B);
}

TEST(DiskTransfer, PacesTheMemoryItUses) {
  WatchedMemory memory(64_KiB, 1);
  Rig rig;
  Bytes read, written;
  memory.on_pace = [&](Access access, Bytes amount) { (access == Access::read ? read : written) += amount; };
  Mover mover({&memory, rig.tiers[Rig::kBlocks]});
  mover.move({exact(0, 1, 1, 3, 30000)});
  EXPECT_EQ(read, 30000_B);
  mover.move({exact(1, 0, 0, 0, 40000)});
  EXPECT_EQ(written, 40000_B);
}

}  // namespace
}  // namespace terrace

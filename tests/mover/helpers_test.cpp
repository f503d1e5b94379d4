// SPDX-License-Identifier: Apache-2.0
// Helpers that are lost, or were never there: everything still arrives.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "test_tiers.hpp"

namespace terrace {
namespace {
using namespace terrace::testing;
using namespace literals;

const Move kWhole = exact(Rig::kDram, 0, Rig::kDram2, 0, 256 * kKiB);

TEST(Helpers, AreAsManyAsAskedFor) {
  Rig rig;
  Mover mover(rig.tiers, {.helpers = 3});
  EXPECT_EQ(mover.helpers(), 3u);
}

TEST(Helpers, WorkWhileNobodyWaits) {
  Rig rig;
  Mover mover(rig.tiers, {.helpers = 1, .chunk = 1_KiB});
  Transfer transfer = mover.start({kWhole});
  while (!transfer.done()) std::this_thread::yield();
  EXPECT_EQ(get(*rig.tiers[Rig::kDram2]), rig.shadow[Rig::kDram]);
}

TEST(Helpers, LeaveNothingUndoneWhenOneIsLost) {
  for (int lost_at = 1; lost_at < 20; ++lost_at) {
    Rig rig;
    std::atomic<int> calls = 0;
    {
      Mover mover(rig.tiers, {.helpers = 2, .chunk = 4_KiB, .before_chunk = [&](unsigned number) {
                                if (number == 0 && ++calls == lost_at) throw std::runtime_error("lost");
                              }});
      auto transfer = mover.start({kWhole});
      while (!transfer.done()) std::this_thread::yield();
      while (calls >= lost_at && mover.helpers() == 2) std::this_thread::yield();  // it is on its way out
      EXPECT_GE(mover.helpers(), 1u);
    }
    rig.apply(kWhole);
    ASSERT_EQ(rig.first_wrong(), -1);
  }
}

TEST(Helpers, LeaveTheWorkToWhoeverWaitsWhenAllAreLost) {
  Rig rig;
  {
    Mover mover(rig.tiers, {.helpers = 2, .chunk = 4_KiB, .before_chunk = [](unsigned) {
                              throw std::runtime_error("lost");
                            }});
    auto transfer = mover.start({kWhole});
    while (mover.helpers() > 0) std::this_thread::yield();
    EXPECT_FALSE(transfer.done());
    transfer.wait();
    EXPECT_TRUE(transfer.done());
    mover.move({exact(Rig::kDram, 0, Rig::kBlocks, 0, 5000)});
  }
  rig.apply(kWhole);
  rig.apply(exact(Rig::kDram, 0, Rig::kBlocks, 0, 5000));
  EXPECT_EQ(rig.first_wrong(), -1);
}

TEST(Helpers, MayBeNone) {
  Rig rig;
  Mover mover(rig.tiers, {.helpers = 0, .chunk = 4_KiB});
  EXPECT_EQ(mover.helpers(), 0u);
  auto transfer = mover.start({kWhole});
  EXPECT_FALSE(transfer.done());
  transfer.wait();
  EXPECT_EQ(get(*rig.tiers[Rig::kDram2]), rig.shadow[Rig::kDram]);
}

TEST(Helpers, MayBeNoneEvenWhenTheMoverEndsFirst) {
  Rig rig;
  Transfer transfer;
  {
    Mover mover(rig.tiers, {.helpers = 0, .chunk = 4_KiB});
    transfer = mover.start({kWhole, exact(Rig::kBlocks, 0, Rig::kBlocks2, 0, 256 * kKiB)});
  }
  EXPECT_TRUE(transfer.done());
  EXPECT_NO_THROW(transfer.wait());
  rig.apply(kWhole);
  rig.apply(exact(Rig::kBlocks, 0, Rig::kBlocks2, 0, 256 * kKiB));
  EXPECT_EQ(rig.first_wrong(), -1);
}

}  // namespace
}  // namespace terrace

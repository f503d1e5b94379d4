// SPDX-License-Identifier: Apache-2.0
// Several threads, many transfers, all tiers, neighbours inside one block: every byte is accounted for.
#include <gtest/gtest.h>

#include <thread>

#include "random_moves.hpp"
#include "terrace/error.hpp"
#include "test_tiers.hpp"

namespace terrace {
namespace {
using namespace terrace::testing;
using namespace literals;

constexpr unsigned kThreads = 4;

// One transfer for each move or one for all, waited for or dropped, at any priority.
bool carry_out(Mover& mover, std::mt19937_64& random, const std::vector<Move>& batch) {
  std::vector<Transfer> transfers;
  const auto priority = [&] { return static_cast<Priority>(random() % 3); };
  if (random() % 3 == 0) {
    transfers.push_back(mover.start(batch, priority()));
  } else {
    for (const Move& move : batch) transfers.push_back(mover.start({move}, priority()));
  }
  std::shuffle(transfers.begin(), transfers.end(), random);
  bool complete = true;
  for (Transfer& transfer : transfers) {
    try {
      transfer.wait();
    } catch (const EnvironmentError&) {
      complete = false;
    }
  }
  return complete;
}

void work(Mover& mover, Rig& rig, unsigned thread, int batches) {
  std::mt19937_64 random(thread);
  for (int i = 0; i < batches; ++i) {
    const std::vector<Move> batch = random_batch(random, thread, Rig::kTiers);
    while (!carry_out(mover, random, batch)) {
    }
    for (const Move& move : batch) rig.apply(move);
  }
}

void run_threads(Mover& mover, Rig& rig, int batches) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back(work, std::ref(mover), std::ref(rig), i, batches);
  for (auto& thread : threads) thread.join();
}

TEST(Stress, FourThreadsKeepEveryByte) {
  for (const unsigned helpers : {0u, 1u, 3u}) {
    Rig rig;
    {
      Mover mover(rig.tiers, {.helpers = helpers, .chunk = 1_KiB, .bounce = 64_KiB});
      run_threads(mover, rig, 60);
    }
    ASSERT_EQ(rig.first_wrong(), -1) << helpers << " helpers";
  }
}

std::uint64_t all_failures(const Mover& mover) {
  std::uint64_t failures = 0;
  for (std::uint32_t from = 0; from < Rig::kTiers; ++from) {
    for (std::uint32_t to = 0; to < Rig::kTiers; ++to) failures += mover.statistics({from}, {to}).failures;
  }
  return failures;
}

TEST(Stress, FailingDevicesLoseNothing) {
  Rig rig;
  {
    Mover mover(rig.tiers, {.helpers = 2, .chunk = 1_KiB, .bounce = 64_KiB});
    rig.fake_at(Rig::kFake).fail_randomly(0.02, FakeTier::Fault::io_error, 1);
    rig.fake_at(Rig::kBlocks).fail_randomly(0.02, FakeTier::Fault::no_progress, 2);
    rig.fake_at(Rig::kBlocks2).fail_randomly(0.3, FakeTier::Fault::short_transfer, 3);
    run_threads(mover, rig, 60);
    EXPECT_GT(all_failures(mover), 0u);
    for (const std::uint32_t tier : {Rig::kFake, Rig::kBlocks, Rig::kBlocks2}) rig.fake_at(tier).heal();
  }
  EXPECT_EQ(rig.first_wrong(), -1);
}

TEST(OneBlock, KeepsWhatTwoTransfersWriteIntoItsHalves) {
  for (int round = 0; round < 100; ++round) {
    Rig rig({16u << 10});
    std::vector<Move> moves;
    for (std::uint64_t i = 0; i < 8; ++i) {
      moves.push_back(exact(Rig::kDram, i * 512, Rig::kBlocks2, 4096 + i * 512, 512));
    }
    {
      Mover mover(rig.tiers, {.bounce = 64_KiB});
      std::vector<Transfer> transfers;
      for (const Move& move : moves) transfers.push_back(mover.start({move}));
    }
    for (const Move& move : moves) rig.apply(move);
    ASSERT_EQ(rig.first_wrong(), -1);
  }
}

}  // namespace
}  // namespace terrace

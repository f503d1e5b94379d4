// SPDX-License-Identifier: Apache-2.0
// Every pair of tiers: the right bytes arrive, and no others change.
#include <gtest/gtest.h>

#include "random_moves.hpp"

namespace terrace {
namespace {
using namespace terrace::testing;

struct Pair {
  std::uint32_t from, to;
};

class EveryPair : public ::testing::TestWithParam<Pair> {};

std::uint64_t pick(std::mt19937_64& random, std::uint64_t below) { return random() % below; }

TEST_P(EveryPair, MovesRandomExtentsAndNothingElse) {
  const Pair pair = GetParam();
  std::mt19937_64 random(pair.from * 10 + pair.to);
  Rig rig;
  const std::uint64_t half = rig.shadow[0].size() / 2;
  for (int round = 0; round < 4; ++round) {
    {
      Mover mover(rig.tiers, {.helpers = 2, .chunk = {10000}, .bounce = {64u << 10}});
      for (int i = 0; i < 50; ++i) {
        const Move move = random_move(random, pair.from, pair.to, half, 50000);
        mover.move({move});
        rig.apply(move);
      }
    }
    ASSERT_EQ(rig.first_wrong(), -1) << "round " << round;
  }
}

// Cuts the upper half of the destination into neighbouring extents and fills them from anywhere.
TEST_P(EveryPair, MovesManyExtentsAsOneTransfer) {
  const Pair pair = GetParam();
  std::mt19937_64 random(pair.from * 10 + pair.to + 100);
  Rig rig;
  const std::uint64_t half = rig.shadow[0].size() / 2;
  for (int round = 0; round < 4; ++round) {
    std::vector<Move> moves;
    for (std::uint64_t at = half; at < 2 * half;) {
      const std::uint64_t unit = round % 2 == 0 ? 512 : 1;
      const std::uint64_t bytes = std::min((1 + pick(random, 4000 / unit)) * unit, 2 * half - at);
      moves.push_back(exact(pair.from, pick(random, (half - bytes) / 64) * 64, pair.to, at, bytes));
      at += bytes;
    }
    std::shuffle(moves.begin(), moves.end(), random);
    {
      Mover mover(rig.tiers, {.helpers = 2, .chunk = {10000}, .bounce = {64u << 10}});
      mover.move(moves);
    }
    for (const Move& move : moves) rig.apply(move);
    ASSERT_EQ(rig.first_wrong(), -1) << "round " << round;
  }
}

TEST_P(EveryPair, MayOverwriteOnlyThePaddingItWasGiven) {
  const Pair pair = GetParam();
  std::mt19937_64 random(pair.from * 10 + pair.to + 200);
  Rig rig({64u << 10});
  const std::uint64_t half = rig.shadow[0].size() / 2;
  for (int round = 0; round < 25; ++round) {
    Move move = exact(pair.from, pick(random, 512), pair.to, half + pick(random, 2) * pick(random, 9000),
                      1 + pick(random, 9000));
    move.to.bytes += Bytes{pick(random, 9000)};
    {
      Mover mover(rig.tiers, {.helpers = 1, .chunk = {10000}, .bounce = {64u << 10}});
      mover.move({move});
    }
    rig.apply(move);
    Content now = get(*rig.tiers[pair.to]);
    const auto padding = static_cast<std::ptrdiff_t>(move.to.offset + move.from.bytes.count);
    const auto end = static_cast<std::ptrdiff_t>(move.to.offset + move.to.bytes.count);
    std::copy(now.begin() + padding, now.begin() + end, rig.shadow[pair.to].begin() + padding);
    ASSERT_EQ(rig.first_wrong(), -1) << "round " << round;
  }
}

std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs;
  for (std::uint32_t from = 0; from < Rig::kTiers; ++from) {
    for (std::uint32_t to = 0; to < Rig::kTiers; ++to) pairs.push_back({from, to});
  }
  return pairs;
}

std::string name_of(const ::testing::TestParamInfo<Pair>& test) {
  static const std::vector<std::string> names{"Dram", "Dram2", "Fake", "Blocks", "Blocks2"};
  return names[test.param.from] + "To" + names[test.param.to];
}

INSTANTIATE_TEST_SUITE_P(OfTiers, EveryPair, ::testing::ValuesIn(all_pairs()), name_of);

TEST(Padding, SparesTheDiskTheReadingOfItsLastBlock) {
  Rig rig;
  Mover mover(rig.tiers);
  FakeTier& disk = rig.fake_at(Rig::kBlocks);
  const auto before = disk.operations();
  mover.move({exact(Rig::kDram, 0, Rig::kBlocks, 512, 1000)});
  EXPECT_EQ(disk.operations() - before, 3u) << "a block, and one read and written back";
  Move padded = exact(Rig::kDram, 0, Rig::kBlocks, 512, 1000);
  padded.to.bytes = {1024};
  mover.move({padded});
  EXPECT_EQ(disk.operations() - before, 4u) << "both blocks at once";
}

TEST(Neighbours, TravelAsOneRequest) {
  Rig rig;
  Mover mover(rig.tiers);
  FakeTier& disk = rig.fake_at(Rig::kBlocks);
  std::vector<Move> writes, reads;
  for (std::uint64_t i = 0; i < 16; ++i) {
    writes.push_back(exact(Rig::kDram, (15 - i) * 1024, Rig::kBlocks, i * 512, 512));
    reads.push_back(exact(Rig::kBlocks, i * 512, Rig::kDram2, (15 - i) * 1024, 512));
  }
  const auto before = disk.operations();
  mover.move(writes);
  EXPECT_EQ(disk.operations() - before, 1u);
  mover.move(reads);
  EXPECT_EQ(disk.operations() - before, 2u);
}

TEST(MixedTransfer, CompletesOverAllItsLinks) {
  Rig rig;
  std::vector<Move> moves;
  for (std::uint32_t from = 0; from < Rig::kTiers; ++from) {
    for (std::uint32_t to = 0; to < Rig::kTiers; ++to) {
      moves.push_back(exact(from, 100, to, 128u * 1024 + from * 9000, 8999));
    }
  }
  {
    Mover mover(rig.tiers);
    mover.move(moves);
  }
  for (const Move& move : moves) rig.apply(move);
  EXPECT_EQ(rig.first_wrong(), -1);
}

}  // namespace
}  // namespace terrace

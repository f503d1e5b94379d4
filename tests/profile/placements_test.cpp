// SPDX-License-Identifier: Apache-2.0
#include "profile/placements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "profile/operands.hpp"

namespace terrace {
namespace {

constexpr TierId kFast{0}, kSlow{1}, kSlower{2};

std::vector<OperandTiers> placements_of(const Graph& graph, const std::vector<TierId>& further) {
  return placements(graph.kernels[0], further);
}

TEST(Placements, AreAllCombinationsWhereTheyAreFewTheMostTellingFirst) {
  EXPECT_EQ(placements_of(one_kernel({8}, {8}, 0), {kSlow}),
            (std::vector<OperandTiers>{{kSlow, kSlow}, {kSlow, kFast}, {kFast, kSlow}}));
  const auto four = placements_of(one_kernel({8, 8}, {8, 8}, 0), {kSlow});
  EXPECT_EQ(std::set<OperandTiers>(four.begin(), four.end()).size(), 15U);
  EXPECT_EQ(four.size(), 15U) << "none twice";
  EXPECT_EQ(placements_of(one_kernel({8}, {8}, 0), {kSlow, kSlower}).size(), 8U);
}

TEST(Placements, AreAllTogetherAndEachAloneWhereTheyAreMany) {
  const auto many = placements_of(one_kernel({8, 8, 8}, {8, 8}, 0), {kSlow});
  ASSERT_EQ(many.size(), 6U);
  EXPECT_EQ(many[0], OperandTiers(5, kSlow));
  for (std::size_t i = 0; i < 5; ++i) {
    OperandTiers alone(5);
    alone[i] = kSlow;
    EXPECT_EQ(many[i + 1], alone);
  }
}

TEST(Placements, KeepWhatIsOneTensorInOneTierAndCountTheWorkspace) {
  Graph graph = one_kernel({8, 8}, {}, 0);
  graph.kernels[0].outputs.push_back(graph.kernels[0].inputs[0]);
  add_workspace(graph, 8);
  const auto all = placements_of(graph, {kSlow});
  EXPECT_EQ(all.size(), 7U);
  for (const OperandTiers& tiers : all) {
    ASSERT_EQ(tiers.size(), 4U);
    EXPECT_EQ(tiers[0], tiers[2]);
  }
}

TEST(Placements, AreNoneWithoutOperandsOrFurtherTiers) {
  EXPECT_TRUE(placements_of(one_kernel({}, {}, 0), {kSlow}).empty());
  EXPECT_TRUE(placements_of(one_kernel({8}, {8}, 0), {}).empty());
}

}  // namespace
}  // namespace terrace

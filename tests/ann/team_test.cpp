// SPDX-License-Identifier: Apache-2.0
#include "ann/team.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "ann/made_vectors.hpp"
#include "support/tiers.hpp"
#include "terrace/ann.hpp"
#include "terrace/error.hpp"

namespace terrace::ann {
namespace {

using namespace literals;

TEST(Team, WorksOnceInEveryMember) {
  for (const unsigned size : {1U, 2U, 5U}) {
    Team team(size);
    std::vector<int> done(size);
    for (int i = 0; i < 200; ++i) team.run([&](unsigned member) { ++done[member]; });
    EXPECT_EQ(done, std::vector<int>(size, 200));
  }
}

TEST(Team, ThrowsWhatAMemberThrewAndGoesOn) {
  Team team(3);
  for (const unsigned unlucky : {0U, 1U, 2U}) {
    EXPECT_THROW(team.run([&](unsigned member) {
      if (member == unlucky) throw std::runtime_error("lost");
    }),
                 std::runtime_error);
    int sum[3] = {};
    team.run([&](unsigned member) { sum[member] = 1; });
    EXPECT_EQ(std::accumulate(sum, sum + 3, 0), 3);
  }
}

BuildOptions with_threads(unsigned threads, unsigned searchers = 1) {
  BuildOptions options;
  options.links = 8;
  options.ef_construction = 60;
  options.fast = 600_KB;
  options.cache = 300_KB;
  options.threads = threads;
  options.searchers = searchers;
  return options;
}

TEST(ThreadsOfAQuery, FindWhatOneThreadFinds) {
  const Vectors vectors = generate(mixture(2000, 24)), queries = generate(mixture(40, 24), 1);
  const auto disk = open_tier("fake:4MiB,blocks").value();
  for (const std::uint32_t shares : {1U, 2U, 4U, 50U}) {
    const SearchOptions search{.ef1 = 16, .ef0 = 20, .beam = 2, .shares = shares};
    BuildOptions one = with_threads(1);
    const Index alone = Index::build(vectors, one).value();
    const Neighbours expected = alone.search(queries, 10, search).value();
    const std::uint64_t distances = alone.statistics().slow_distances,
                        longest = alone.statistics().longest_share;
    EXPECT_GE(longest * std::min<std::uint64_t>(shares, search.ef1), distances) << shares;
    EXPECT_EQ(longest == distances, shares == 1) << shares;
    for (Tier* tier : {static_cast<Tier*>(nullptr), disk.get()}) {
      // Search data of more threads leaves less for the upper layer; this gives it back.
      BuildOptions more = with_threads(4);
      more.fast = more.fast + Bytes{2 * 2000 * 3} + 300_KB;
      more.cache = 600_KB;
      const Index together = Index::build(vectors, more, tier).value();
      ASSERT_EQ(together.size().promoted, alone.size().promoted);
      EXPECT_EQ(together.search(queries, 10, search).value(), expected) << shares;
      EXPECT_EQ(together.statistics().slow_distances, distances) << shares;
      EXPECT_EQ(together.statistics().longest_share, longest) << shares;
    }
  }
}

TEST(ThreadsOfAQuery, AreCountedInFastMemory) {
  const Index index = Index::build(generate(mixture(2000, 24)), with_threads(3, 2)).value();
  EXPECT_EQ(index.size().searchers, Bytes{2 * 2000 * 6});
  EXPECT_LE(index.size().fast(), 600_KB);
}

TEST(ThreadsOfAQuery, FailItAloudWhereTheDiskFails) {
  const Vectors vectors = generate(mixture(2500, 24)), queries = generate(mixture(10, 24), 1);
  const auto tier = open_tier("fake:4MiB,blocks").value();
  BuildOptions options = with_threads(3);
  options.cache = 500_KB;
  options.fast = 800_KB;
  const Index index = Index::build(vectors, options, tier.get()).value();
  const SearchOptions search{.ef1 = 16, .ef0 = 20, .shares = 3};
  for (const std::uint64_t nth : {1U, 5U, 20U}) {
    as_fake(*tier).fail(nth, FakeTier::Fault::io_error, Access::read);
    EXPECT_THROW((void)index.search(queries, 10, search), EnvironmentError) << nth;
    as_fake(*tier).heal();
    (void)index.search(queries, 10, search).value();
  }
}

TEST(ThreadsOfAQuery, AndQueriesAtOnceDoNotDisturbOneAnother) {
  const Vectors vectors = generate(mixture(1500, 16)), queries = generate(mixture(40, 16), 1);
  const Index index = Index::build(vectors, with_threads(2, 3)).value();
  const SearchOptions search{.ef1 = 16, .ef0 = 20, .shares = 2};
  const Neighbours expected = index.search(queries, 10, search).value();
  std::vector<Neighbours> found(4);
  {
    std::vector<std::jthread> threads;
    for (auto& one : found) threads.emplace_back([&] { one = index.search(queries, 10, search).value(); });
  }
  for (const auto& one : found) EXPECT_EQ(one, expected);
}

}  // namespace
}  // namespace terrace::ann

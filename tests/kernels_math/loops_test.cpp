// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <stdexcept>

#include "backends/cpu/math/gelu.hpp"
#include "math/team.hpp"
#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

TEST(Level, StaysForcedUntilTheEndOfTheScope) {
  ASSERT_EQ(level(), best_level());
  {
    const ForcedLevel forced(Level::baseline);
    EXPECT_EQ(level(), Level::baseline);
  }
  EXPECT_EQ(level(), best_level());
}

TEST(Level, RefusesOneThatTheProcessorLacks) {
  const auto above = static_cast<Level>(static_cast<int>(best_level()) + 1);
  EXPECT_THROW(ForcedLevel{above}, std::logic_error);
  EXPECT_EQ(level(), best_level());
}

TEST(Level, RunsWhatItIsGivenAndReturnsTheResult) {
  at_each_level([] {
    const auto difference = [](std::int64_t begin, std::int64_t end) { return end - begin; };
    EXPECT_EQ(run_at(level(), difference, 3, 10), 7);
  });
}

TEST(Team, DoesEveryPieceOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const Threads team(threads);
    EXPECT_EQ(team_size(), threads);
    for (const std::int64_t pieces : {0, 1, 2, 7, 100}) {
      std::vector<int> done(static_cast<std::size_t>(pieces));
      for_pieces(pieces, [&](std::int64_t piece) { ++done[static_cast<std::size_t>(piece)]; });
      EXPECT_EQ(std::count(done.begin(), done.end(), 1), pieces);
    }
  }
}

TEST(Team, WorksOnSeveralThreads) {
  const Threads team(2);
  // Each piece waits for the other: one thread alone would never end.
  std::atomic<int> arrived = 0;
  for_pieces(2, [&](std::int64_t) {
    ++arrived;
    while (arrived < 2) {
    }
  });
  EXPECT_EQ(arrived, 2);
}

TEST(Loops, RefuseANegativeSize) {
  float x = 1;
  EXPECT_THROW(gelu_forward(&x, Gelu::exact, &x, -1), std::logic_error);
  EXPECT_EQ(x, 1);
}

}  // namespace
}  // namespace terrace::math

// SPDX-License-Identifier: Apache-2.0
// The fast solver on problems of random graphs, against the exact one.
#include <gtest/gtest.h>

#include <algorithm>

#include "autotm/rig.hpp"
#include "optim/cbc.hpp"
#include "planners/autotm/solver/fast.hpp"
#include "planners/autotm/solver/reduction.hpp"
#include "support/long_tests.hpp"

namespace terrace::autotm {
namespace {

struct Outcome {
  int solved = 0, none = 0;
  double lost = 0;  ///< to the optimum, as a share of it, in all
};

FastOptions options(double gap) {
  FastOptions made;
  made.gap = gap;
  made.iterations = 2000;
  return made;
}

/// Within capacity, bounded, and infeasible only where the exact program is.
void compare(const Problem& problem, Formulation formulation, Outcome& outcome) {
  const PlanRequest request = problem.request();
  const auto instance = make_instance(request, formulation, problem.budget[0]);
  if (!instance) return;
  const auto fast = solve_fast(*instance, options(0.001));
  const auto exact = solve_exactly(request, *instance, Linking::tight, {0, Seconds{60}});
  ASSERT_EQ(fast.ok(), exact.ok()) << (fast ? exact.error().message : fast.error().message);
  if (!fast) {
    EXPECT_EQ(fast.error().code, ErrorCode::too_large);
    ++outcome.none;
    return;
  }
  for (const Bytes bytes : occupancy(*instance, fast->solution)) EXPECT_LE(bytes, instance->capacity);
  EXPECT_EQ(fast->time, step_time(*instance, fast->solution));
  // CBC's optimum is one within its tolerances.
  EXPECT_LE(fast->bound.count(), exact->objective.count() * (1 + 1e-5));
  EXPECT_GE(fast->time.count(), exact->bound.count() * (1 - 1e-5));
  ++outcome.solved;
  outcome.lost += fast->time / exact->objective - 1;
}

TEST(AutotmFast, AgreesWithTheExactProgramOnRandomGraphs) {
  if (!optim::has_cbc()) GTEST_SKIP() << "this build has no CBC";
  Outcome outcome;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(20, 40); ++seed) {
    const Problem problem(seed, 8);
    for (const Formulation formulation : kFormulations) {
      SCOPED_TRACE(testing::Message() << seed << ", formulation " << static_cast<int>(formulation));
      compare(problem, formulation, outcome);
    }
  }
  EXPECT_GT(outcome.solved, few_or_all(30, 60));
  EXPECT_LT(outcome.lost / outcome.solved, 0.02);
}

/// Large enough that steps are shared. Up to the first placement threads only do the same work sooner.
TEST(AutotmFast, ClimbsOnTwoThreadsAsOnOne) {
  Problem problem(2, 10'000);
  problem.budget[0] = Lifetimes(problem.graph).peak_bytes() / 2;
  const auto instance = make_instance(problem.request(), Formulation::synchronous, problem.budget[0]);
  ASSERT_TRUE(instance);
  const std::size_t edges = Reduction(flatten(*instance), 0).flat.edges.size();
  ASSERT_LT(Team::middle(edges), edges);
  FastOptions asked = options(0);
  asked.iterations = 100;
  const auto one = solve_fast(*instance, asked);
  asked.threads = 2;
  const auto two = solve_fast(*instance, asked);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->bound, two->bound);
  EXPECT_EQ(one->multipliers, two->multipliers);
  EXPECT_EQ(one->solution.paths, two->solution.paths);
  EXPECT_GT(*std::max_element(one->multipliers.begin(), one->multipliers.end()), 0);
}

/// With room for everything nothing is lost and nothing costs anything.
TEST(AutotmFast, TakesTheFastestOfEverythingWhereItFits) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Problem problem(seed, 30);
    problem.budget[0] = problem.machine.tiers[0].capacity;
    for (const Formulation formulation : kFormulations) {
      const auto instance = make_instance(problem.request(), formulation, problem.budget[0]);
      ASSERT_TRUE(instance);
      const auto fast = solve_fast(*instance, options(1e-6));
      ASSERT_TRUE(fast);
      EXPECT_TRUE(fast->within_gap) << fast->gap();
      for (const double price : fast->multipliers) EXPECT_EQ(price, 0);
    }
  }
}

}  // namespace
}  // namespace terrace::autotm

// SPDX-License-Identifier: Apache-2.0
// The exact programs against every way of placing and moving the tensors of very small graphs.
#include "autotm/oracle.hpp"
#include "autotm/written.hpp"
#include "support/long_tests.hpp"

namespace terrace::autotm {
namespace {

constexpr SolverLimits kExact{0, Seconds{600}};

class EveryFormulation : public WithCbc, public testing::WithParamInterface<Formulation> {};

TEST_P(EveryFormulation, FindsTheBestOfAllPlacementsOfSmallGraphs) {
  int solved = 0, infeasible = 0, beyond_fast = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(150, 300); ++seed) {
    const Problem given(seed, 2 + static_cast<std::uint32_t>(seed % 3));
    SCOPED_TRACE(describe(GetParam(), seed));
    const PlanRequest request = given.request();
    Oracle oracle(request, GetParam());
    if (oracle.combinations() > 1e7) continue;
    const double best = oracle.best().count();
    const auto instance = make_instance(request, GetParam(), request.budget[0]);
    const auto found =
        instance ? solve_exactly(request, *instance, Linking::tight, kExact) : instance.error();
    ASSERT_EQ(found.ok(), std::isfinite(best)) << best << (found ? "" : found.error().message);
    if (!found) {
      ++infeasible;
      EXPECT_EQ(found.error().code, ErrorCode::too_large);
      continue;
    }
    ++solved;
    if (best > KernelClock(given.graph, given.machine, given.profile).fast_step().count() * 1.001)
      ++beyond_fast;
    EXPECT_TRUE(found->proven);
    EXPECT_NEAR(found->objective.count(), best, best * 1e-7);
    EXPECT_NEAR(found->bound.count(), best, best * 1e-7);
  }
  // Cases of each kind, or nothing was shown.
  EXPECT_GT(solved, few_or_all(50, 100));
  EXPECT_GT(infeasible, few_or_all(5, 10));
  EXPECT_GT(beyond_fast, few_or_all(25, 50)) << "of " << solved;
}

TEST_P(EveryFormulation, IsTheSameWithEitherLinking) {
  for (std::uint64_t seed = 1000; seed < few_or_all<std::uint64_t>(1012, 1030); ++seed) {
    const Problem given(seed, 6);
    SCOPED_TRACE(describe(GetParam(), seed));
    const PlanRequest request = given.request();
    const auto instance = make_instance(request, GetParam(), request.budget[0]);
    if (!instance) continue;
    const auto tight = solve_exactly(request, *instance, Linking::tight, kExact);
    const auto paper = solve_exactly(request, *instance, Linking::paper, kExact);
    ASSERT_EQ(tight.ok(), paper.ok());
    if (tight) {
      EXPECT_NEAR(tight->objective.count(), paper->objective.count(), tight->objective.count() * 1e-7);
    }
  }
}

TEST_P(EveryFormulation, StaysWithinTheGapAndTheCapacity) {
  constexpr double kGap = 0.1;
  int solved = 0;
  for (std::uint64_t seed = 2000; seed < few_or_all<std::uint64_t>(2015, 2030); ++seed) {
    const Problem given(seed, 10);
    SCOPED_TRACE(describe(GetParam(), seed));
    const PlanRequest request = given.request();
    const auto instance = make_instance(request, GetParam(), request.budget[0]);
    if (!instance) continue;
    const auto exact = solve_exactly(request, *instance, Linking::tight, kExact);
    const auto near = solve_exactly(request, *instance, Linking::tight, {kGap, Seconds{600}});
    ASSERT_EQ(exact.ok(), near.ok());
    if (!exact) continue;
    ++solved;
    EXPECT_LE(near->bound.count(), exact->objective.count() * (1 + 1e-7));
    EXPECT_GE(near->objective.count(), exact->objective.count() * (1 - 1e-7));
    EXPECT_LE(near->objective.count(), near->bound.count() / (1 - kGap) * (1 + 1e-7));
    for (const Bytes bytes : occupancy(*instance, near->solution)) EXPECT_LE(bytes, instance->capacity);
  }
  EXPECT_GT(solved, few_or_all(5, 10));
}

std::string name_of(const testing::TestParamInfo<Formulation>& info) {
  constexpr const char* kNames[] = {"fixed", "synchronous", "asynchronous"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Programs, EveryFormulation, testing::ValuesIn(kFormulations), name_of);

/// Each formulation offers all that the one before does.
TEST(Formulations, AreNoSlowerThanTheStricterOnes) {
  if (!optim::has_cbc()) GTEST_SKIP() << "this build has no CBC";
  int faster = 0;
  for (std::uint64_t seed = 3000; seed < 3040; ++seed) {
    const Problem given(seed, 6);
    const PlanRequest request = given.request();
    Seconds before{std::numeric_limits<double>::infinity()};
    for (const Formulation formulation : kFormulations) {
      SCOPED_TRACE(describe(formulation, seed));
      const auto instance = make_instance(request, formulation, request.budget[0]);
      if (!instance) continue;
      const auto found = solve_exactly(request, *instance, Linking::tight, kExact);
      if (!found) continue;
      EXPECT_LE(found->objective.count(), before.count() * (1 + 1e-7));
      if (found->objective.count() < before.count() * 0.999 && std::isfinite(before.count())) ++faster;
      before = found->objective;
    }
  }
  EXPECT_GT(faster, 5);
}

}  // namespace
}  // namespace terrace::autotm

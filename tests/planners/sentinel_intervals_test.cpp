// SPDX-License-Identifier: Apache-2.0
// Migration intervals: what they hold, and which are chosen.
#include <gtest/gtest.h>

#include "planners/sentinel_rig.hpp"

namespace terrace::sentinel {
namespace {

constexpr double kMegaPerSecond = static_cast<double>(kMega);

/// Two layers: short-lived tensors take one megabyte in the first, three in the second until its last kernel.
Graph two_layers() {
  LayerGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId a = rig.made("a", kMega), b = rig.made("b", 3 * kMega);
  const TensorId m = rig.made("m", 64), n = rig.made("n", 64), y = rig.made("y", 64);
  rig.layer("one", {x}, {a});
  rig.join("two", {a}, {m});
  rig.layer("three", {m}, {b});
  rig.join("four", {b}, {n});
  rig.join("five", {n, m}, {y});
  rig.graph.results = {y};
  return rig.graph;
}

struct Prepared {
  Planned step;
  PlanRequest request;
  StepView view;
  Units units;
  Prepared(Graph graph, Machine machine, std::uint64_t fast)
      : step(std::move(graph), std::move(machine)),
        request(step.request(fast)),
        view(request),
        units(make_units(view, Grouping::small, ShortLived::apart)) {}
};

TEST(SentinelIntervals, AreRunsOfLayersAndTheLastMayBeShorter) {
  const Prepared given(rig_chain(4), rig_machine(kMegaPerSecond, false), 8 * kMega);
  EXPECT_EQ(equal_cuts(given.view, 3), (Cuts{0, 3, 6}));
  EXPECT_EQ(equal_cuts(given.view, 100), Cuts{0});
}

TEST(SentinelIntervals, ReserveWhatShortLivedTensorsTakeInEach) {
  const Prepared given(two_layers(), rig_machine(kMegaPerSecond, false), 8 * kMega);
  EXPECT_EQ(reserves(given.view, given.units, equal_cuts(given.view, 1)),
            (std::vector<Bytes>{{kMega}, {3 * kMega + 64}}));
  EXPECT_EQ(reserves(given.view, given.units, equal_cuts(given.view, 2)),
            (std::vector<Bytes>{{3 * kMega + 64}}));
}

TEST(SentinelIntervals, ShrinkTheReserveOnceItIsNotNeeded) {
  const Prepared given(two_layers(), rig_machine(kMegaPerSecond, false), 8 * kMega);
  const Visits visits = make_visits(given.view, given.units, equal_cuts(given.view, 1));
  const Schedule schedule = make_schedule(given.view, given.units, visits, Bytes{8 * kMega}, {});
  EXPECT_GT(schedule.planned.most(3, 3), static_cast<std::int64_t>(3 * kMega));
  EXPECT_LT(schedule.planned.most(4, 4), static_cast<std::int64_t>(kMega));
}

TEST(SentinelIntervals, HaveOneVisitOfEachUnitTheyUse) {
  const Prepared given(rig_chain(4), rig_machine(kMegaPerSecond, false), 8 * kMega);
  const Visits visits = make_visits(given.view, given.units, equal_cuts(given.view, 2));
  const std::uint32_t a1 = given.units.of[find_tensor(given.step.graph, "a1").index];
  const Visit& first = visits.all[visits.first[a1]];
  EXPECT_EQ(std::pair(first.first, first.last), std::pair(0U, 1U));
  const Visit& second = visits.all[first.next];
  EXPECT_EQ(std::pair(second.first, second.last), std::pair(6U, 6U));
  EXPECT_EQ(second.next, kNever);
}

/// An interval over the whole step holds everything at once; what one layer needs is three megabytes.
TEST(SentinelIntervals, KeepTheSpaceConstraint) {
  const Prepared given(rig_chain(8), rig_machine(100 * kMegaPerSecond, false), 5 * kMega);
  const auto fits = [&](std::uint32_t layers, std::uint64_t capacity) {
    const Visits visits = make_visits(given.view, given.units, equal_cuts(given.view, layers));
    return make_schedule(given.view, given.units, visits, Bytes{capacity}, {}).fits;
  };
  EXPECT_TRUE(fits(1, 4 * kMega));
  EXPECT_FALSE(fits(16, 4 * kMega));
  const Choice choice = choose_equal(given.view, given.units, Bytes{5 * kMega}, {});
  EXPECT_TRUE(fits(choice.layers, 5 * kMega));
}

TEST(SentinelIntervals, AreNoneWhereNotEvenOneLayerFits) {
  const Prepared given(rig_chain(8), rig_machine(kMegaPerSecond, false), 5 * kMega);
  EXPECT_EQ(choose_equal(given.view, given.units, Bytes{2 * kMega}, {}).layers, 0U);
}

/// Forward, every layer makes a tensor that takes a second and a half to fetch. Backward, every other layer
/// of one second needs one: intervals of two layers hide that, those of one do not.
Graph every_other_layer(int count) {
  LayerGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  std::vector<TensorId> made;
  for (int i = 0; i < count; ++i) {
    made.push_back(rig.made("a" + std::to_string(i), kMega * 3 / 2));
    rig.layer("forward" + std::to_string(i), {x}, {made.back()}, Phase::forward, 10);
  }
  TensorId y = x;
  for (int i = 0; i < count; ++i) {
    const TensorId even = rig.made("d" + std::to_string(i), 64), odd = rig.made("e" + std::to_string(i), 64);
    rig.layer("use" + std::to_string(i), {y, made[static_cast<std::size_t>(i)]}, {even}, Phase::backward);
    rig.layer("idle" + std::to_string(i), {even}, {odd}, Phase::backward);
    y = odd;
  }
  rig.graph.results = {y};
  return rig.graph;
}

TEST(SentinelIntervals, AreAsLongAsHidesWhatMoves) {
  const Prepared given(every_other_layer(8), rig_machine(kMegaPerSecond, false), 5 * kMega);
  EXPECT_EQ(choose_equal(given.view, given.units, Bytes{5 * kMega}, {}).layers, 2U);
}

TEST(SentinelIntervals, AreShortWhereEverythingFits) {
  const Prepared given(every_other_layer(8), rig_machine(kMegaPerSecond, false), 64 * kMega);
  EXPECT_EQ(choose_equal(given.view, given.units, Bytes{64 * kMega}, {}).layers, 1U);
}

/// The last layer needs what takes three seconds to fetch; those before it have one each.
TEST(SentinelIntervals, DifferWhereThatHidesMore) {
  LayerGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId a = rig.made("a", 3 * kMega), large = rig.made("large", 3 * kMega);
  TensorId y = rig.made("y", 64);
  rig.layer("make", {x}, {a}, Phase::forward, 10);
  rig.layer("fill", {x}, {large}, Phase::forward, 10);
  rig.join("drain", {large}, {y});
  for (int i = 0; i < 7; ++i) {
    const TensorId next = rig.made("z" + std::to_string(i), 64);
    rig.layer("idle" + std::to_string(i), {y}, {next});
    y = next;
  }
  const TensorId end = rig.made("end", 64);
  rig.layer("use", {a, y}, {end}, Phase::backward);
  rig.graph.results = {end};
  const Prepared given(rig.graph, rig_machine(kMegaPerSecond, false), 5 * kMega);
  const Cuts cuts = choose_unequal(given.view, given.units, equal_cuts(given.view, 1), Bytes{5 * kMega}, {});
  // Only the interval before the last has to hide anything.
  ASSERT_GE(cuts.size(), 3U);
  EXPECT_EQ(given.view.begin[cuts.back()] - given.view.begin[cuts[cuts.size() - 2]], Seconds{3});
  EXPECT_EQ(cuts[1], 1U);
}

}  // namespace
}  // namespace terrace::sentinel

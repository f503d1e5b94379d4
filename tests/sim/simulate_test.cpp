// SPDX-License-Identifier: Apache-2.0
#include "terrace/simulate.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/rig.hpp"

namespace terrace {
namespace {

void expect_interval(const Interval& interval, double begin, double end) {
  EXPECT_DOUBLE_EQ(interval.begin.count(), begin);
  EXPECT_DOUBLE_EQ(interval.end.count(), end);
}

TEST(Simulate, NothingTakesNoTime) {
  const Timeline timeline = timeline_of({}, two_tiers(), {});
  EXPECT_EQ(timeline.step.count(), 0);
  EXPECT_EQ(timeline.exposed.count(), 0);
  EXPECT_TRUE(timeline.moved.empty());
  EXPECT_EQ(timeline.peak, std::vector<Bytes>(2));
}

TEST(Simulate, KernelsRunOneAfterTheOther) {
  const Timeline timeline = timeline_of(bare_graph({2, 3}, {}), two_tiers(), {run(0), run(1), run(0)});
  expect_interval(timeline.instructions[0], 0, 2);
  expect_interval(timeline.instructions[1], 2, 5);
  expect_interval(timeline.instructions[2], 5, 7);
  EXPECT_DOUBLE_EQ(timeline.step.count(), 7);
  EXPECT_EQ(timeline.exposed.count(), 0);
}

TEST(Simulate, WaitingAtOnceHidesNothing) {
  const Timeline timeline =
      timeline_of(bare_graph({2, 3}, {4}), two_tiers(), {run(0), out(0, 7), Wait{7}, run(1)});
  expect_interval(timeline.instructions[1], 2, 6);
  expect_interval(timeline.instructions[2], 2, 6);
  EXPECT_DOUBLE_EQ(timeline.step.count(), 9);
  EXPECT_DOUBLE_EQ(timeline.exposed.count(), 4);
}

TEST(Simulate, ATransferBehindALongerKernelIsHidden) {
  const Timeline timeline =
      timeline_of(bare_graph({5, 1}, {4}), two_tiers(), {out(0, 0), run(0), Wait{0}, run(1)});
  expect_interval(timeline.instructions[0], 0, 4);
  expect_interval(timeline.instructions[2], 5, 5);
  EXPECT_DOUBLE_EQ(timeline.step.count(), 6);
  EXPECT_EQ(timeline.exposed.count(), 0);
}

TEST(Simulate, OnlyWhatALongerTransferLeavesIsExposed) {
  const Timeline timeline =
      timeline_of(bare_graph({3, 1}, {10}), two_tiers(), {in(0, 0), run(0), Wait{0}, run(1)});
  expect_interval(timeline.instructions[2], 3, 10);
  EXPECT_DOUBLE_EQ(timeline.step.count(), 11);
  EXPECT_DOUBLE_EQ(timeline.exposed.count(), 7);
}

TEST(Simulate, TransfersOfALinkGoInTheOrderTheyWereStarted) {
  const Timeline timeline = timeline_of(bare_graph({1}, {4, 2, 1}), two_tiers(),
                                        {out(0, 0), out(1, 1), run(0), out(2, 2), Wait{1}, Wait{2}, Wait{0}});
  expect_interval(timeline.instructions[0], 0, 4);
  expect_interval(timeline.instructions[1], 4, 6);
  expect_interval(timeline.instructions[3], 6, 7);
  expect_interval(timeline.instructions[4], 1, 6);
  expect_interval(timeline.instructions[5], 6, 7);
  expect_interval(timeline.instructions[6], 7, 7);
}

TEST(Simulate, AnIdleLinkStartsLate) {
  const Timeline timeline =
      timeline_of(bare_graph({1, 9}, {2, 3}), two_tiers(), {out(0, 0), run(1), out(1, 1), Wait{0}, Wait{1}});
  expect_interval(timeline.instructions[2], 9, 12);
}

TEST(Simulate, OppositeLinksShareWhileBothAreBusy) {
  // Both at half speed for 4 s; then the longer one is alone with 4 of its 6 s left.
  const Timeline timeline =
      timeline_of(bare_graph({}, {2, 6}), two_tiers(0.5), {out(0, 0), in(1, 1), Wait{0}, Wait{1}});
  expect_interval(timeline.instructions[0], 0, 4);
  expect_interval(timeline.instructions[1], 0, 8);
  EXPECT_DOUBLE_EQ(timeline.exposed.count(), 8);
}

TEST(Simulate, LinksOfOtherTiersDoNotShare) {
  Machine machine = two_tiers(0.5);
  add_tier(machine);
  machine.links.push_back(byte_per_second(kFast, {2}, 0.5, 0));
  const Timeline timeline =
      timeline_of(bare_graph({}, {2, 6}), machine, {out(0, 0), copy(1, kFast, {2}, 1), Wait{0}, Wait{1}});
  expect_interval(timeline.instructions[0], 0, 2);
  expect_interval(timeline.instructions[1], 0, 6);
}

TEST(Simulate, KernelsLoseSpeedWhileALinkIsBusy) {
  // Three quarters of the speed for 4 s do 3 s of the work, 2 s more remain.
  const Timeline timeline =
      timeline_of(bare_graph({5}, {4}), two_tiers(1, 0.25), {out(0, 0), run(0), Wait{0}});
  expect_interval(timeline.instructions[1], 0, 6);
  EXPECT_EQ(timeline.exposed.count(), 0);
}

TEST(Simulate, LinksLoseSpeedWhileKernelsRun) {
  // Half the rate for 2 s and all of it for the other 3 s, while the kernel has ended.
  Machine machine = two_tiers();
  machine.links[0].while_computing = 0.5;
  const Timeline timeline = timeline_of(bare_graph({2}, {4}), machine, {out(0, 0), run(0), Wait{0}});
  expect_interval(timeline.instructions[0], 0, 5);
  expect_interval(timeline.instructions[1], 0, 2);
}

TEST(Simulate, LossesOfBusyLinksMultiply) {
  // Half for each link: a quarter for 2 s, a half for 2 s, then all of the rest.
  const Timeline timeline = timeline_of(bare_graph({3}, {2, 4}), two_tiers(1, 0.5),
                                        {out(0, 0), in(1, 1), run(0), Wait{0}, Wait{1}});
  expect_interval(timeline.instructions[2], 0, 5.5);
}

TEST(Simulate, ALinkThatTakesAllComputeOnlyDelaysIt) {
  const Timeline timeline = timeline_of(bare_graph({3}, {4}), two_tiers(1, 1), {out(0, 0), run(0), Wait{0}});
  expect_interval(timeline.instructions[1], 0, 7);
}

TEST(Simulate, TensorsOfOneCopyTravelTogether) {
  Machine machine = two_tiers();
  machine.links[0].rates = {{Bytes{2}, {1}}, {Bytes{8}, {4}}};
  const Copy both{{{0}, {1}}, kFast, kSlow, 3};
  const Timeline timeline = timeline_of(bare_graph({}, {2, 6}), machine, {both, Wait{3}});
  expect_interval(timeline.instructions[0], 0, 2);
}

TEST(Simulate, TrafficIsCountedByLink) {
  const Timeline timeline = timeline_of(bare_graph({}, {2, 6}), two_tiers(),
                                        {out(0, 0), out(1, 1), in(0, 2), Wait{0}, Wait{1}, Wait{2}});
  const std::vector<Traffic> expected{{kFast, kSlow, Bytes{8}}, {kSlow, kFast, Bytes{2}}};
  EXPECT_EQ(timeline.moved, expected);
}

TEST(Simulate, PeakCountsWholeRegionsAndThoseOfTheStart) {
  Machine machine = two_tiers();
  machine.tiers[0].granularity = Bytes{64};
  const Graph graph = bare_graph({}, {10, 65, 100});
  Plan plan;
  plan.start = {{{0}, kFast, 0}};
  plan.instructions = {Alloc{{1}, kFast, 64}, Alloc{{2}, kSlow, 0}, Free{{1}, kFast}, Alloc{{2}, kFast, 64}};
  const Timeline timeline = simulate(graph, machine, estimate(graph, machine), plan);
  EXPECT_EQ(timeline.peak, (std::vector<Bytes>{{192}, {100}}));
}

TEST(Simulate, TheStepEndsWhenEveryLinkIsIdle) {
  const Timeline timeline = timeline_of(bare_graph({1}, {4}), two_tiers(), {out(0, 0), run(0)});
  expect_interval(timeline.instructions[0], 0, 4);
  EXPECT_DOUBLE_EQ(timeline.step.count(), 4);
}

TEST(Simulate, OperandsInSlowTiersSlowKernelsDown) {
  Machine machine = two_tiers();
  machine.tiers[0].read = {10}, machine.tiers[1].read = {5};
  Graph graph = bare_graph({3}, {20});
  graph.kernels[0].inputs = {{{0}, {}, Bytes{20}, ""}};
  const Timeline timeline = timeline_of(graph, machine, {run(0, 0, {kSlow}), run(0, 0, {kFast})});
  expect_interval(timeline.instructions[0], 0, 4);
  expect_interval(timeline.instructions[1], 4, 7);
}

TEST(Simulate, RefusesWhatNoVerifiedPlanHolds) {
  const Graph graph = bare_graph({1}, {4});
  const auto refused = [&](const std::vector<Instruction>& instructions) {
    EXPECT_THROW(timeline_of(graph, two_tiers(), instructions), std::logic_error);
  };
  refused({Wait{5}});
  refused({copy(0, kFast, kFast, 0)});
  refused({run(0, 1)});
  refused({run(0, 0, {kFast})});
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Timelines of several lanes, by hand: kernels take the seconds they are given, links carry a byte a second.
#include <gtest/gtest.h>

#include "sim/rig.hpp"

namespace terrace {
namespace {

Machine with_engines(std::uint32_t engines, double compute_loss = 0) {
  Machine machine = two_tiers(1, compute_loss);
  for (std::uint32_t i = 1; i < engines; ++i)
    machine.further_engines.push_back({{"engine" + std::to_string(i), 1, 1, {}}, {kFast}});
  return machine;
}
terrace::Run on(std::uint32_t engine, std::uint32_t kernel, std::optional<std::uint32_t> ticket,
                std::vector<std::uint32_t> after = {}) {
  return {{kernel}, 0, {}, {engine}, ticket, std::move(after)};
}
void expect_interval(const Timeline& timeline, std::size_t place, double begin, double end) {
  EXPECT_DOUBLE_EQ(timeline.instructions[place].begin.count(), begin) << place;
  EXPECT_DOUBLE_EQ(timeline.instructions[place].end.count(), end) << place;
}

TEST(SimulateLanes, EnginesRunSideBySide) {
  const Graph graph = bare_graph({3, 5, 2}, {});
  const Timeline timeline = timeline_of(graph, with_engines(2), {on(1, 1, 7), run(0), on(1, 2, 8), Wait{8}});
  expect_interval(timeline, 0, 0, 5);
  expect_interval(timeline, 1, 0, 3);
  expect_interval(timeline, 2, 5, 7);  // issued at 3, and its lane works in order
  expect_interval(timeline, 3, 3, 7);
  EXPECT_DOUBLE_EQ(timeline.step.count(), 7);
  EXPECT_DOUBLE_EQ(timeline.exposed.count(), 0);
}

TEST(SimulateLanes, ARunWithoutATicketHoldsUpTheIssuing) {
  const Graph graph = bare_graph({3, 5}, {});
  const Timeline timeline = timeline_of(graph, with_engines(2), {on(1, 1, {}), run(0)});
  expect_interval(timeline, 0, 0, 5);
  expect_interval(timeline, 1, 5, 8);
}

TEST(SimulateLanes, ATransferStartsAfterItsTicketsAndHoldsUpItsLinkAlone) {
  const Graph graph = bare_graph({3, 5, 1}, {4, 2});
  Copy held = out(0, 1), behind = out(1, 2), other = in(1, 3);
  held.after = {9};
  const Timeline timeline =
      timeline_of(graph, with_engines(2), {on(1, 1, 9), held, behind, other, run(0), run(2), Wait{2}});
  expect_interval(timeline, 1, 5, 9);
  expect_interval(timeline, 2, 9, 11);
  expect_interval(timeline, 3, 0, 2);
  expect_interval(timeline, 4, 0, 3);
  expect_interval(timeline, 5, 3, 4);
  EXPECT_DOUBLE_EQ(timeline.step.count(), 11);
  EXPECT_DOUBLE_EQ(timeline.exposed.count(), 6);
}

TEST(SimulateLanes, AKernelStartsAfterATransfer) {
  const Graph graph = bare_graph({3, 5}, {4});
  const Timeline timeline =
      timeline_of(graph, with_engines(3), {in(0, 1), on(2, 1, 2, {1}), run(0), Wait{2}});
  expect_interval(timeline, 1, 4, 9);
  expect_interval(timeline, 2, 0, 3);
}

TEST(SimulateLanes, BusyLinksSlowEveryEngineDown) {
  const Graph graph = bare_graph({2, 3}, {4});
  const Timeline timeline =
      timeline_of(graph, with_engines(2, 0.5), {out(0, 1), on(1, 1, 2), run(0), Wait{2}, Wait{1}});
  expect_interval(timeline, 2, 0, 4);
  expect_interval(timeline, 1, 0, 5);  // two of its three seconds while the link is busy
}

TEST(SimulateLanes, AnEngineTakesAsMuchLongerAsItsRateIsLower) {
  Machine machine = with_engines(2);
  machine.further_engines[0].compute.flops_per_second = 0.25;
  const Graph graph = bare_graph({3}, {});
  expect_interval(timeline_of(graph, machine, {on(1, 0, {})}), 0, 0, 12);
}

}  // namespace
}  // namespace terrace

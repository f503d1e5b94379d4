// SPDX-License-Identifier: Apache-2.0
#include "pages/replay/replay.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <sstream>

namespace terrace::pages {
namespace {

using namespace literals;

const Machine& four_tiers() {
  static const Machine machine = machine_preset("optane-4tier").value();
  return machine;
}

/// A hundredth of the paper's sizes, so that a test takes moments.
ReplayOptions small() {
  ReplayOptions options;
  options.capacity_scale = 0.01;
  options.moved_bytes = 20 << 20;
  options.overhead = 0.05 / 20;  // as many samples a block as in the paper's size, roughly
  return options;
}

std::unique_ptr<AccessTrace> gups() { return make_workload("gups", 120, 5_GB).value(); }

TEST(Workloads, HaveTheSharesTheyClaim) {
  for (const WorkloadInfo& info : trace_workloads()) {
    const auto trace = make_workload(info.name, 20, 4_GB).value();
    std::vector<Accesses> first(trace->shape().blocks), again(trace->shape().blocks);
    for (const std::uint32_t window : {0U, 7U, 19U}) {
      trace->window(window, first);
      trace->window(window, again);
      double sum = 0, writes = 0;
      for (std::size_t i = 0; i < first.size(); ++i) {
        ASSERT_EQ(first[i].all(), again[i].all());
        sum += first[i].all();
        writes += first[i].writes;
      }
      EXPECT_NEAR(sum, 230e6, 230e6 * 0.02) << info.name;
      const bool reads_only = info.name == "bfs" || info.name == "sssp";
      EXPECT_NEAR(writes / sum, reads_only ? 0 : 0.5, 0.01) << info.name;
    }
  }
}

class EveryPolicy : public ::testing::TestWithParam<PolicyInfo> {};
INSTANTIATE_TEST_SUITE_P(All, EveryPolicy, ::testing::ValuesIn(replay_policies()), [](const auto& policy) {
  std::string name(policy.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(EveryPolicy, ServesEveryAccessAndIsTheSameTwice) {
  const auto trace = make_workload("voltdb", 30, 3_GB).value();
  const ReplayResult result = replay(*trace, four_tiers(), GetParam().name, small()).value();
  const double served = std::accumulate(result.accesses.begin(), result.accesses.end(), 0.0);
  EXPECT_NEAR(served, 30 * 230e6, 30 * 230e6 * 0.02);
  EXPECT_GT(result.program_seconds, 0);
  EXPECT_NEAR(result.seconds, result.program_seconds + result.looking_seconds + result.migrating_seconds,
              1e-9);
  const ReplayResult again = replay(*trace, four_tiers(), GetParam().name, small()).value();
  EXPECT_EQ(result.seconds, again.seconds);
  EXPECT_EQ(result.moved_bytes, again.moved_bytes);
  if (GetParam().name == "first-touch" || GetParam().name == "memory-mode") {
    EXPECT_EQ(result.moved_bytes, 0U);
  }
}

TEST(Replay, KeeperStaysWithinItsOverheadAndMovesNoMoreThanAllowed) {
  const ReplayOptions options = small();
  const ReplayResult result = replay(*gups(), four_tiers(), "keeper", options).value();
  EXPECT_LE(result.most_looking, options.overhead * 1.001);
  EXPECT_GT(result.most_looking, options.overhead * 0.5) << "the allowance is used";
  // Each promotion may demote as much.
  EXPECT_LE(result.moved_bytes, 120U * 2 * options.moved_bytes);
  EXPECT_GT(result.moved_bytes, 0U);
}

// At the size of the paper: in small memory every page is used so often that all look hot.
TEST(Replay, KeeperFindsTheHotSetAndServesMoreFromFastMemory) {
  const auto trace = make_workload("gups", 25).value();
  const ReplayResult keeper = replay(*trace, four_tiers(), "keeper", {}).value();
  const ReplayResult first_touch = replay(*trace, four_tiers(), "first-touch", {}).value();
  EXPECT_LT(keeper.program_seconds, first_touch.program_seconds);
  EXPECT_GT(keeper.accesses[0], first_touch.accesses[0]);
  EXPECT_GE(keeper.recall, 0.9);
  EXPECT_GE(keeper.precision, 0.8);
}

TEST(Replay, ReadsWhatRunRecords) {
  std::istringstream text("terrace-trace 1 block=65536\nwindow\nff 3 0\n1 0 2\nwindow\nff 1 0\n");
  const auto trace = read_trace(text, "t").value();
  EXPECT_EQ(trace->shape().blocks, 2U);
  EXPECT_EQ(trace->shape().windows, 2U);
  std::vector<Accesses> accesses(2);
  trace->window(1, accesses);
  EXPECT_EQ(accesses[0].reads, 1);
  EXPECT_EQ(accesses[1].all(), 0);
  ReplayOptions options;
  options.capacity_scale = 1e-3;
  EXPECT_TRUE(replay(*trace, four_tiers(), "keeper", options).ok());
}

TEST(Replay, RefusesWhatIsNoTraceWithASentence) {
  for (const char* text :
       {"", "hello", "terrace-trace 1 block=100\n", "terrace-trace 1 block=65536\n1 2 3\n",
        "terrace-trace 1 block=65536\nwindow\nxyz 1 1\n", "terrace-trace 1 block=65536\nwindow\n1 1\n",
        "terrace-trace 1 block=65536\nwindow\n1 1 99999999999999999999\n", "terrace-trace 1 block=65536\n"}) {
    std::istringstream stream(text);
    const auto trace = read_trace(stream, "t");
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_NE(trace.error().message.find("line"), std::string::npos);
  }
  EXPECT_NE(make_workload("tpcc", 1).error().message.find("voltdb"), std::string::npos);
  EXPECT_NE(replay(*gups(), four_tiers(), "best", small()).error().message.find("hemem"), std::string::npos);
  ReplayOptions tiny;
  tiny.capacity_scale = 1e-6;
  EXPECT_NE(replay(*gups(), four_tiers(), "keeper", tiny).error().message.find("--scale"), std::string::npos);
}

TEST(LargerBlocks, HaveTheAccessesOfTheirPieces) {
  const auto trace = make_workload("gups", 4, 1_GB).value();
  const Bytes block{trace->shape().block.count * 8};
  const auto large = in_larger_blocks(*trace, block);
  EXPECT_EQ(large->shape().blocks, (trace->shape().blocks + 7) / 8);
  std::vector<Accesses> small_ones(trace->shape().blocks), large_ones(large->shape().blocks);
  trace->window(2, small_ones);
  large->window(2, large_ones);
  double first = 0, all = 0;
  for (std::size_t i = 0; i < small_ones.size(); ++i) (i < 8 ? first : all) += small_ones[i].all();
  double rest = 0;
  for (std::size_t i = 1; i < large_ones.size(); ++i) rest += large_ones[i].all();
  EXPECT_NEAR(large_ones[0].all(), first, first * 1e-4);
  EXPECT_NEAR(rest, all, all * 1e-4);
  ASSERT_NE(large->hot_set(), nullptr);
  EXPECT_EQ(large->hot_set()->size(), large_ones.size());
}

TEST(LargerPages, MoveAsAWhole) {
  const auto trace = make_workload("voltdb", 30, 3_GB).value();
  ReplayOptions options = small();
  const double expected = replay(*trace, four_tiers(), "keeper", options).value().seconds;
  options.page = 2_MiB;
  const ReplayResult by_2_mib = replay(*trace, four_tiers(), "keeper", options).value();
  EXPECT_NEAR(by_2_mib.seconds, expected, expected * 0.2);
  options.page = 64_MiB;
  const ReplayResult by_64_mib = replay(*trace, four_tiers(), "keeper", options).value();
  EXPECT_EQ(by_64_mib.moved_bytes % (64U << 20), 0U);
  options.page = Bytes{3000};
  EXPECT_FALSE(replay(*trace, four_tiers(), "keeper", options));
}

}  // namespace
}  // namespace terrace::pages

#include "planners/autotm/solver/fast.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "autotm_fast/random_instance.hpp"
#include "optim/cbc.hpp"

namespace terrace::autotm {
namespace {

constexpr std::uint64_t kInstances = 3000;
/// Three tiers have some with a billion.
constexpr double kMostCombinations = 50'000;
/// Of sums of a few times.
constexpr double kRounding = 1e-12;

FastOptions options(double gap, std::uint64_t iterations) {
  FastOptions made;
  made.gap = gap;
  made.iterations = iterations;
  return made;
}

/// Paths from end to end, configurations that the places satisfy, within the capacity.
void expect_valid(const Instance& instance, const Solution& solution) {
  ASSERT_EQ(solution.paths.size(), instance.tensors.size());
  ASSERT_EQ(solution.configurations.size(), instance.kernels.size());
  std::vector<std::vector<TierId>> tiers;
  for (std::size_t t = 0; t < instance.tensors.size(); ++t) {
    const FlowGraph& graph = instance.tensors[t];
    std::uint32_t node = 0;
    for (const std::uint32_t e : solution.paths[t]) {
      ASSERT_LT(e, graph.edges.size());
      EXPECT_EQ(graph.edges[e].from, node);
      node = graph.edges[e].to;
    }
    for (const Edge& edge : graph.edges) EXPECT_NE(edge.from, node) << "the path ends too early";
    tiers.push_back(places(graph, solution.paths[t]));
  }
  for (std::size_t k = 0; k < instance.kernels.size(); ++k) {
    const KernelChoice& kernel = instance.kernels[k];
    ASSERT_LT(solution.configurations[k], kernel.configurations.size());
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      EXPECT_LE(tiers[kernel.operands[i].tensor][kernel.operands[i].use],
                kernel.tier(solution.configurations[k], i));
    }
  }
  EXPECT_TRUE(is_within_capacities(instance, solution));
}

class AutotmFastOf : public testing::TestWithParam<std::uint32_t> {};

TEST_P(AutotmFastOf, BoundsEveryOptimumAndKeepsItsClaim) {
  std::uint64_t solved = 0, optimal = 0, none = 0, missed = 0;
  for (std::uint64_t seed = 0; seed < kInstances; ++seed) {
    SCOPED_TRACE(seed);
    const Instance instance = RandomInstance(seed, GetParam()).make();
    BruteForce all(instance);
    if (all.combinations() > kMostCombinations) continue;
    const double best = all.best();
    const double gap = seed % 2 == 0 ? 0 : 0.05;
    const auto result = solve_fast(instance, options(gap, 200));
    if (!result) {
      if (result.error().code == ErrorCode::too_large) {
        EXPECT_TRUE(std::isinf(best));
      }
      ++(std::isinf(best) ? none : missed);
      continue;
    }
    ASSERT_FALSE(std::isinf(best));
    expect_valid(instance, result->solution);
    EXPECT_EQ(result->time, step_time(instance, result->solution));
    EXPECT_LE(result->bound.count(), best * (1 + kRounding));
    EXPECT_GE(result->time.count(), best * (1 - kRounding));
    EXPECT_EQ(result->within_gap, result->gap() <= gap);
    if (result->within_gap) {
      EXPECT_LE(result->time.count(), (1 + gap) * best * (1 + kRounding) + 1e-9);
    }
    ++solved;
    optimal += result->time.count() <= best * (1 + kRounding);
  }
  // What the instances are like, and how good the solutions.
  EXPECT_GT(solved, kInstances / 2);
  EXPECT_GT(none, kInstances / 50);
  EXPECT_LT(missed, GetParam() == 2 ? 1U : kInstances / 100);
  EXPECT_GT(optimal, solved * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Tiers, AutotmFastOf, testing::Values(2U, 3U));

/// The same prices bound what other capacities allow: each byte saves at most its price.
TEST(AutotmFast, PricesSayWhatMemoryIsWorthAtMost) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 0; seed < kInstances; seed += 3) {
    SCOPED_TRACE(seed);
    Instance instance = RandomInstance(seed).make();
    const auto result = solve_fast(instance, options(0, 100));
    if (!result) continue;
    ASSERT_EQ(result->multipliers.size(), instance.moments());
    double of_all = 0;
    for (const double price : result->multipliers) {
      EXPECT_GE(price, 0);
      of_all += price;
    }
    const Bytes more{1 + seed % 500};
    instance.capacity += more;
    const double best = BruteForce(instance).best();
    EXPECT_GE(best * (1 + kRounding) + 1e-9,
              result->bound.count() - of_all * static_cast<double>(more.count));
    compared += of_all > 0;
  }
  EXPECT_GT(compared, kInstances / 20);
}

/// What prices leave open is proved by the exact program, whose bound is one, too.
TEST(AutotmFast, ProvesByBranchingWhatPricesCannot) {
  if (!optim::has_cbc()) GTEST_SKIP() << "this build has no CBC";
  std::uint64_t proved = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const Instance instance = RandomInstance(seed, 2 + static_cast<std::uint32_t>(seed % 2)).make();
    FastOptions asked = options(0.01, 4000);
    const auto alone = solve_fast(instance, asked);
    if (!alone || alone->within_gap) continue;
    asked.branches = true;
    const auto branched = solve_fast(instance, asked);
    ASSERT_TRUE(branched);
    expect_valid(instance, branched->solution);
    EXPECT_EQ(branched->time, step_time(instance, branched->solution));
    EXPECT_TRUE(branched->within_gap) << branched->gap();
    BruteForce all(instance);
    if (all.combinations() > kMostCombinations) continue;
    EXPECT_LE(branched->bound.count(), all.best() * (1 + kRounding));
    ++proved;
  }
  EXPECT_GT(proved, 20U);
}

TEST(AutotmFast, RepeatsItselfExactly) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Instance instance = RandomInstance(seed).make();
    FastOptions asked = options(seed % 4 < 2 ? 0 : 0.01, 1000);
    asked.threads = 1 + static_cast<unsigned>(seed % 2);
    const auto one = solve_fast(instance, asked), other = solve_fast(instance, asked);
    ASSERT_EQ(one.ok(), other.ok());
    if (!one) continue;
    EXPECT_EQ(one->solution.paths, other->solution.paths);
    EXPECT_EQ(one->solution.configurations, other->solution.configurations);
    EXPECT_EQ(one->bound, other->bound);
    EXPECT_EQ(one->multipliers, other->multipliers);
    EXPECT_EQ(one->iterations, other->iterations);
  }
}

TEST(AutotmFast, ReturnsTheBestFoundWhenAStopIsRequested) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Instance instance = RandomInstance(seed).make();
    FastOptions none = options(0, 1'000'000);
    std::stop_source over;
    over.request_stop();
    none.stop = over.get_token();
    const auto result = solve_fast(instance, none);
    if (!result) continue;
    expect_valid(instance, result->solution);
    EXPECT_EQ(result->within_gap, result->gap() <= 0);
    EXPECT_LT(result->iterations, 100U);
  }
}

TEST(AutotmFast, SaysWhichMomentNeedsTooMuch) {
  Instance instance;
  instance.slow = TierId{1};
  instance.capacity = Bytes{1023};
  instance.kernels.resize(2);
  FlowGraph graph;
  graph.size = Bytes{1024};
  graph.uses = {{2, true, false}};
  graph.nodes = 2;
  Edge edge;
  edge.to = 1;
  edge.use = 0;
  edge.first = edge.last = 2;
  graph.edges = {edge};
  instance.tensors = {graph};
  instance.kernels[0].configurations = {{0, {}, {}, Seconds{1}}};
  instance.kernels[1] = {{{0, 0}}, {{0, {}, {}, Seconds{1}}}, {0}};
  const auto none = solve_fast(instance, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::too_large);
  EXPECT_NE(none.error().message.find("moment 2 needs 1.00 KiB"), std::string::npos) << none.error().message;
  instance.capacity = Bytes{1024};
  EXPECT_TRUE(solve_fast(instance, {}));
}

}  // namespace
}  // namespace terrace::autotm

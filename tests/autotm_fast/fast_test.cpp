#include "planners/autotm/fast.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "autotm_fast/random_instance.hpp"

namespace terrace::autotm {
namespace {

constexpr std::uint64_t kInstances = 3000;
/// Of sums of a few times.
constexpr double kRounding = 1e-12;

FastOptions options(double gap, std::uint64_t iterations) {
  FastOptions made;
  made.gap = gap;
  made.time = Seconds{60};
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
    const Configuration& one = kernel.configurations[solution.configurations[k]];
    for (std::size_t i = 0; i < kernel.operands.size(); ++i)
      EXPECT_LE(tiers[kernel.operands[i].tensor][kernel.operands[i].use], one.tiers[i]);
  }
  for (const Bytes bytes : occupancy(instance, solution)) EXPECT_LE(bytes, instance.capacity);
}

TEST(AutotmFast, BoundsEveryOptimumAndKeepsItsClaim) {
  std::uint64_t solved = 0, optimal = 0, none = 0, missed = 0;
  for (std::uint64_t seed = 0; seed < kInstances; ++seed) {
    SCOPED_TRACE(seed);
    const Instance instance = RandomInstance(seed).make();
    const double best = BruteForce(instance).best();
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
  EXPECT_LT(missed, 1U);
  EXPECT_GT(optimal, solved * 9 / 10);
}

}  // namespace
}  // namespace terrace::autotm

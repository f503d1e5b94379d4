// SPDX-License-Identifier: Apache-2.0
// The generator makes what its options claim.
#include "support/random_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace terrace {
namespace {

constexpr std::uint32_t kKernels = 20'000;

Graph large(RandomGraphOptions options = {}) {
  options.kernels = kKernels;
  return random_graph(options, 3);
}

bool updates(const Kernel& kernel) { return kernel.phase == Phase::update; }

TEST(RandomGraph, IsTheSameForTheSameSeed) {
  EXPECT_EQ(random_graph({}, 1), random_graph({}, 1));
  EXPECT_NE(random_graph({}, 1), random_graph({}, 2));
}

TEST(RandomGraph, HasTheNumberOfKernelsAsked) {
  for (const std::uint32_t kernels : {0U, 1U, 7U, 100U}) {
    EXPECT_EQ(random_graph({.kernels = kernels}, 1).kernels.size(), kernels);
  }
}

TEST(RandomGraph, FansInEvenlyUpToTheMost) {
  std::array<double, 5> counts{};
  double kernels = 0;
  for (const Kernel& kernel : large({.max_fan_in = 4}).kernels) {
    if (updates(kernel)) continue;
    ASSERT_LE(kernel.inputs.size(), 4U);
    counts[kernel.inputs.size()] += 1;
    kernels += 1;
  }
  for (std::size_t inputs = 1; inputs <= 4; ++inputs) EXPECT_NEAR(counts[inputs] / kernels, 0.25, 0.02);
}

TEST(RandomGraph, SizesAreLogUniform) {
  const Graph graph = large({.least = Bytes{64}, .most = Bytes{65536}, .in_place_share = 0});
  std::array<double, 10> octaves{};
  for (const Tensor& tensor : graph.tensors) {
    ASSERT_GE(tensor.bytes, Bytes{64});
    ASSERT_LE(tensor.bytes, Bytes{65536});
    octaves[std::min<std::size_t>(
        9, static_cast<std::size_t>(std::log2(static_cast<double>(tensor.bytes.count) / 64)))] += 1;
  }
  for (const double octave : octaves)
    EXPECT_NEAR(octave / static_cast<double>(graph.tensors.size()), 0.1, 0.02);
}

TEST(RandomGraph, ReadsPersistentTensorsAsOftenAsAsked) {
  for (const double share : {0.0, 0.4, 1.0}) {
    const Graph graph = large({.persistent_share = share});
    double persistent = 0, all = 0;
    for (const Kernel& kernel : graph.kernels) {
      if (updates(kernel)) continue;
      for (const Operand& in : kernel.inputs) persistent += graph[in.tensor].persistent ? 1 : 0;
      all += static_cast<double>(kernel.inputs.size());
    }
    EXPECT_NEAR(persistent / all, share, 0.02);
  }
}

TEST(RandomGraph, WorksInPlaceAsOftenAsAsked) {
  double pairs = 0, all = 0;
  const Graph graph = large({.in_place_share = 0.6});
  for (const Kernel& kernel : graph.kernels) {
    if (updates(kernel)) continue;
    all += 1;
    if (kernel.in_place.empty()) continue;
    pairs += 1;
    EXPECT_EQ(graph[kernel.inputs[0].tensor].bytes, graph[kernel.outputs[0].tensor].bytes);
  }
  EXPECT_NEAR(pairs / all, 0.6, 0.02);
}

TEST(RandomGraph, HasTheOtherSharesAsked) {
  const Graph graph = large({.update_share = 0.3, .workspace_share = 0.2, .result_share = 0.4});
  double updated = 0, workspaces = 0, made = 0;
  for (const Kernel& kernel : graph.kernels) {
    updated += updates(kernel) ? 1 : 0;
    workspaces += kernel.workspace ? 1 : 0;
  }
  for (const Tensor& tensor : graph.tensors) {
    const bool is_made = tensor.kind == TensorKind::activation || tensor.kind == TensorKind::gradient;
    made += is_made ? 1 : 0;
  }
  EXPECT_NEAR(updated / kKernels, 0.3, 0.02);
  EXPECT_NEAR(workspaces / kKernels, 0.2, 0.02);
  EXPECT_NEAR(static_cast<double>(graph.results.size()) / made, 0.4, 0.02);
}

TEST(RandomGraph, ReadsWeightsAfterTheirUpdate) {
  const Graph graph = random_graph({.kernels = 400}, 4);
  std::vector<bool> updated(graph.tensors.size());
  int read_again = 0;
  for (const Kernel& kernel : graph.kernels) {
    for (const Operand& in : kernel.inputs) read_again += updated[in.tensor.index] ? 1 : 0;
    if (updates(kernel)) updated[kernel.outputs[0].tensor.index] = true;
  }
  EXPECT_GT(read_again, 40);
}

}  // namespace
}  // namespace terrace

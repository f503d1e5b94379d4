// SPDX-License-Identifier: Apache-2.0
#include "terrace/lifetimes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/nets.hpp"
#include "support/random_graph.hpp"
#include "support/stress_factor.hpp"

namespace terrace {
namespace {

bool touches(const Kernel& kernel, TensorId id) {
  const auto same = [&](const Operand& operand) { return operand.tensor == id; };
  return kernel.workspace == id || std::any_of(kernel.inputs.begin(), kernel.inputs.end(), same) ||
         std::any_of(kernel.outputs.begin(), kernel.outputs.end(), same);
}

/// The oracle: asks of every tensor at every position whether the words of the header make it live there.
bool is_live(const Graph& graph, TensorId id, std::uint32_t position) {
  bool used = false, before = false, after = false;
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    if (!touches(graph.kernels[k], id)) continue;
    used = true;
    before = before || k <= position;
    after = after || k >= position;
  }
  const Tensor& tensor = graph[id];
  const bool result = std::find(graph.results.begin(), graph.results.end(), id) != graph.results.end();
  if (!used) return false;
  if (tensor.persistent) return true;
  return (before || tensor.kind == TensorKind::input) && (after || result);
}

void expect_recounted(const Graph& graph) {
  const Lifetimes lifetimes(graph);
  Bytes peak;
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    Bytes live;
    for (std::uint32_t t = 0; t < graph.tensors.size(); ++t) {
      const bool expected = is_live(graph, {t}, k);
      if (expected) live += graph.tensors[t].bytes;
      const Lifetime& lifetime = lifetimes[{t}];
      ASSERT_EQ(lifetime.used && lifetime.first <= k && k <= lifetime.last, expected)
          << graph.tensors[t].name << " at " << k;
    }
    ASSERT_EQ(lifetimes.live_bytes()[k], live) << "at " << k;
    if (live > peak) {
      peak = live;
    }
  }
  EXPECT_EQ(lifetimes.peak_bytes(), peak);
  const auto first = std::find(lifetimes.live_bytes().begin(), lifetimes.live_bytes().end(), peak);
  EXPECT_EQ(lifetimes.peak_kernel().index, first - lifetimes.live_bytes().begin());
}

TEST(Lifetimes, AgreeWithARecountOfRandomGraphs) {
  for (int seed = 0; seed < 100 * stress_factor(); ++seed) {
    expect_recounted(random_graph({.kernels = 1 + static_cast<std::uint32_t>(seed % 25)}, seed));
  }
}

TEST(Lifetimes, AgreeWithARecountOfNets) {
  for (const Graph& graph : all_nets()) expect_recounted(graph);
}

TEST(Lifetimes, ListUsersInOrderAndOnce) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Graph graph = random_graph({.kernels = 20}, seed);
    const Lifetimes lifetimes(graph);
    for (std::uint32_t t = 0; t < graph.tensors.size(); ++t) {
      std::vector<KernelId> users;
      for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
        if (touches(graph.kernels[k], {t})) users.push_back({k});
      }
      EXPECT_EQ(lifetimes[{t}].users, users);
      EXPECT_EQ(lifetimes[{t}].used, !users.empty());
    }
  }
}

TEST(Lifetimes, NameTheProducerOfWhatIsMadeInTheStep) {
  const Graph graph = mlp();
  const Lifetimes lifetimes(graph);
  EXPECT_FALSE(lifetimes[find_tensor(graph, "image")].producer);
  EXPECT_FALSE(lifetimes[find_tensor(graph, "fc1.weight")].producer);
  EXPECT_EQ(lifetimes[find_tensor(graph, "fc1:relu")].producer, KernelId{1});
}

TEST(Lifetimes, CountLayerStepsForwardAndBackwardApart) {
  Net net("n");
  Value x = net.relu(net.linear("a", net.input("x", {4, 6}), 6));
  x = net.linear("b", x, 6);
  net.train(net.binary_cross_entropy(x, 1), {.momentum = 0});
  const Graph graph = std::move(net).finish();
  const Lifetimes lifetimes(graph);
  // a and b forward, b and a backward, updates of a and of b.
  EXPECT_EQ(lifetimes.layer_steps(), 6U);
  EXPECT_EQ(lifetimes.layer_step({0}), 0U);
  EXPECT_EQ(lifetimes.layer_step({1}), 0U);
  EXPECT_EQ(lifetimes.layer_step({2}), 1U);
  const Lifetime& kept = lifetimes[find_tensor(graph, "a:relu")];
  EXPECT_EQ(kept.first_step, 0U);
  EXPECT_EQ(kept.last_step, 3U);
  EXPECT_EQ(kept.layer_steps(), 4U);
}

TEST(Lifetimes, OfNoKernelsAreEmpty) {
  Graph graph;
  graph.tensors.resize(1);
  const Lifetimes lifetimes(graph);
  EXPECT_EQ(lifetimes.peak_bytes(), Bytes{});
  EXPECT_FALSE(lifetimes.peak_kernel());
  EXPECT_EQ(lifetimes.layer_steps(), 0U);
  EXPECT_FALSE(lifetimes[{0}].used);
}

}  // namespace
}  // namespace terrace

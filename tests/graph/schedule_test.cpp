// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "graph/dependences.hpp"
#include "graph/interpreter.hpp"
#include "graph/nets.hpp"
#include "graph/occupancy.hpp"
#include "graph/passes.hpp"
#include "support/random_graph.hpp"
#include "support/stress_factor.hpp"
#include "terrace/lifetimes.hpp"

namespace terrace {
namespace {

bool uses(const std::vector<Operand>& operands, TensorId id) {
  return std::any_of(operands.begin(), operands.end(), [&](const Operand& o) { return o.tensor == id; });
}

/// Whether two kernels may not change places: one writes what the other reads or writes.
bool conflict(const Kernel& a, const Kernel& b) {
  for (const auto& [writer, other] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    for (const Operand& out : writer->outputs) {
      if (uses(other->inputs, out.tensor) || uses(other->outputs, out.tensor)) return true;
    }
  }
  return false;
}

/// The oracle: tries every order the conflicts allow, and counts each with Lifetimes.
class Exhaustive {
 public:
  explicit Exhaustive(const Graph& graph) : graph_(graph), trial_(graph), done_(graph.kernels.size()) {
    trial_.kernels.clear();
  }
  Bytes least_peak() {
    extend();
    return least_;
  }

 private:
  void extend() {
    const auto& kernels = graph_.kernels;
    if (trial_.kernels.size() == kernels.size()) least_ = std::min(least_, Lifetimes(trial_).peak_bytes());
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      if (done_[k] || waits(k)) continue;
      done_[k] = true;
      trial_.kernels.push_back(kernels[k]);
      extend();
      trial_.kernels.pop_back();
      done_[k] = false;
    }
  }
  bool waits(std::size_t k) const {
    for (std::size_t earlier = 0; earlier < k; ++earlier) {
      if (!done_[earlier] && conflict(graph_.kernels[earlier], graph_.kernels[k])) return true;
    }
    return false;
  }

  const Graph& graph_;
  Graph trial_;
  std::vector<bool> done_;
  Bytes least_{std::numeric_limits<std::uint64_t>::max()};
};

Bytes peak(const Graph& graph) { return Lifetimes(graph).peak_bytes(); }

TEST(Dependences, OrderExactlyWhatConflicts) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Graph graph = random_graph({.kernels = 10, .rewrite_share = 0.3}, seed);
    const Dependences dependences(graph);
    // reach[b][a]: b comes after a, directly or not.
    std::vector<std::vector<bool>> direct(10, std::vector<bool>(10)), reach = direct;
    for (std::uint32_t b = 0; b < 10; ++b) {
      for (const std::uint32_t a : dependences.before(b)) {
        ASSERT_LT(a, b);
        EXPECT_TRUE(conflict(graph.kernels[a], graph.kernels[b]));
        const auto& after = dependences.after(a);
        EXPECT_EQ(std::count(after.begin(), after.end(), b), 1);
        reach[b][a] = true;
        for (std::uint32_t c = 0; c < a; ++c) reach[b][c] = reach[b][c] || reach[a][c];
      }
      for (std::uint32_t a = 0; a < b; ++a) {
        if (conflict(graph.kernels[a], graph.kernels[b])) {
          EXPECT_TRUE(reach[b][a]) << "seed " << seed;
        }
      }
    }
  }
}

TEST(Dependences, KeepTheOrderOfWriters) {
  Graph graph = random_graph({.kernels = 2, .update_share = 0, .rewrite_share = 0}, 1);
  graph.kernels[1] = graph.kernels[0];
  EXPECT_EQ(Dependences(graph).before(1), std::vector<std::uint32_t>{0});
}

TEST(Dependences, ReversedRunsBackwards) {
  const Graph graph = random_graph({.kernels = 9}, 5);
  const Dependences forward(graph), backward = forward.reversed();
  for (std::uint32_t k = 0; k < 9; ++k) {
    auto expected = forward.after(8 - k);
    for (auto& other : expected) other = 8 - other;
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(backward.before(k), expected);
  }
}

TEST(Occupancy, CountsWhatLifetimesCount) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Graph graph = random_graph({.kernels = 30}, seed);
    const MemoryUse use(graph), reversed = use.reversed();
    Occupancy forward(use), backward(reversed);
    for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
      forward.run(k);
      backward.run(k);
    }
    EXPECT_EQ(forward.peak_bytes(), static_cast<std::int64_t>(peak(graph).count));
    EXPECT_EQ(backward.peak_bytes(), forward.peak_bytes());
  }
}

TEST(Occupancy, TellsWhatAKernelWouldChange) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Graph graph = random_graph({.kernels = 20}, seed);
    const Lifetimes lifetimes(graph);
    const auto& live = lifetimes.live_bytes();
    const MemoryUse use(graph);
    Occupancy occupancy(use);
    for (std::uint32_t k = 0; k + 1 < graph.kernels.size(); ++k) {
      // Live after k: what is live in k and is not freed by it.
      std::int64_t starts = 0, ends_before = 0, ends = 0;
      for (std::uint32_t t = 0; t < graph.tensors.size(); ++t) {
        const Lifetime& lifetime = lifetimes[{t}];
        const auto bytes = static_cast<std::int64_t>(graph.tensors[t].bytes.count);
        if (!lifetime.used) continue;
        const bool given = graph.tensors[t].persistent || graph.tensors[t].kind == TensorKind::input;
        if (lifetime.first == k && !given) starts += bytes;
        if (lifetime.last == k) ends += bytes;
        if (k > 0 && lifetime.last == k - 1) ends_before += bytes;
      }
      EXPECT_EQ(occupancy.change(k), starts - ends) << "seed " << seed << " kernel " << k;
      if (k > 0) {
        EXPECT_EQ(live[k].count + ends_before - starts, live[k - 1].count);
      }
      occupancy.run(k);
    }
  }
}

TEST(Schedule, IsNeverWorseAndKeepsAllResults) {
  for (int seed = 0; seed < 300 * stress_factor(); ++seed) {
    const Graph graph = random_graph({.kernels = 5 + static_cast<std::uint32_t>(seed % 40)}, seed);
    const Graph scheduled = schedule(graph);
    ASSERT_TRUE(validate(scheduled).ok());
    EXPECT_LE(peak(scheduled), peak(graph)) << "seed " << seed;
    EXPECT_EQ(scheduled.kernels.size(), graph.kernels.size());
    EXPECT_EQ(interpret(scheduled), interpret(graph)) << "seed " << seed;
    EXPECT_EQ(schedule(graph), scheduled);
  }
}

TEST(Schedule, ComesCloseToTheBestOrder) {
  int optimal = 0, graphs = 0;
  double excess = 0, worst = 1;
  for (int seed = 0; seed < 150 * stress_factor(); ++seed) {
    const Graph graph = random_graph(
        {.kernels = 6 + static_cast<std::uint32_t>(seed % 3), .max_fan_in = 2, .max_fan_out = 1}, seed);
    const Bytes best = Exhaustive(graph).least_peak();
    const Bytes ours = peak(schedule(graph));
    ASSERT_GE(ours, best) << "seed " << seed;
    ++graphs;
    optimal += ours == best ? 1 : 0;
    const double ratio = static_cast<double>(ours.count) / static_cast<double>(best.count);
    excess += ratio - 1;
    worst = std::max(worst, ratio);
  }
  RecordProperty("optimal_percent", 100 * optimal / graphs);
  RecordProperty("mean_excess_permille", static_cast<int>(1000 * excess / graphs));
  RecordProperty("worst_excess_percent", static_cast<int>(100 * (worst - 1)));
  EXPECT_GT(optimal, graphs * 4 / 5);
  EXPECT_LT(excess / graphs, 0.01);
}

TEST(Schedule, KeepsTheGivenOrderWhereNothingIsGained) {
  Net net("chain");
  Value x = net.input("x", {4});
  for (int i = 0; i < 5; ++i) x = net.relu(x);
  net.result(x);
  const Graph chain = std::move(net).finish();
  EXPECT_EQ(schedule(chain), chain);
}

TEST(Schedule, KeepsTheGivenOrderOfEqualPeaks) {
  Graph graph;
  graph.layers = {"all"};
  for (const std::uint32_t i : {0U, 1U}) {
    Tensor tensor;
    tensor.name = "result" + std::to_string(i);
    tensor.type = DataType::u8;
    tensor.shape = {8 - 4 * i};
    tensor.bytes = Bytes{8 - 4 * i};
    graph.tensors.push_back(tensor);
    Kernel kernel;
    kernel.name = "kernel" + std::to_string(i);
    kernel.outputs = {{{i}, tensor.shape, tensor.bytes, {}}};
    graph.kernels.push_back(kernel);
    graph.results.push_back({i});
  }
  // The smaller one first would be as good.
  EXPECT_EQ(schedule(graph), graph);
}

TEST(Schedule, RunsUpdatesAsSoonAsTheirGradientIsComplete) {
  Net net("wide");
  Value x = net.input("x", {1, 64});
  for (int i = 0; i < 6; ++i) x = net.relu(net.linear("fc" + std::to_string(i), x, 64));
  net.train(net.cross_entropy(x, net.input("label", {1}, DataType::i32)), {});
  const Graph graph = std::move(net).finish();
  // Weight gradients of all layers were live at once before; they are as large as the weights.
  EXPECT_LT(peak(schedule(graph)).count + 4 * 64 * 64 * 4, peak(graph).count);
}

TEST(Schedule, ReadsAnUpdatedWeightAfterItsUpdate) {
  const Graph graph = adversarial(), scheduled = schedule(graph);
  EXPECT_EQ(interpret(scheduled), interpret(graph));
}

TEST(Schedule, NeverRaisesThePeakOfNets) {
  for (const Graph& graph : all_nets()) {
    const Graph scheduled = schedule(graph);
    EXPECT_LE(peak(scheduled), peak(graph)) << graph.name;
    EXPECT_EQ(interpret(scheduled), interpret(graph)) << graph.name;
  }
}

TEST(Schedule, TakesAnEmptyGraph) { EXPECT_EQ(schedule(Graph{}), Graph{}); }

TEST(Schedule, TakesManyKernels) {
  const Graph graph = random_graph({.kernels = 10'000}, 1);
  EXPECT_LE(peak(schedule(graph)), peak(graph));
}

}  // namespace
}  // namespace terrace

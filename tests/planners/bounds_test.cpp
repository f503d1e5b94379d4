// SPDX-License-Identifier: Apache-2.0
// The bounds against every way of moving things in very small graphs.
#include <gtest/gtest.h>

#include <limits>

#include "base/random.hpp"
#include "support/exhaustive.hpp"
#include "support/graph_by_hand.hpp"
#include "support/random_graph.hpp"
#include "terrace/planner.hpp"

namespace terrace {
namespace {

TEST(Bounds, AreNotAboveTheBestOfAllPlansOfSmallGraphs) {
  int compared = 0, binding = 0, met = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SplitMix random(seed);
    RandomGraphOptions options;
    options.kernels = 4 + static_cast<std::uint32_t>(random.below(3));
    options.least = Bytes{1024};
    const Graph graph = random_graph(options, seed);
    const auto some = [&](double unit, std::uint64_t most) {
      return unit * static_cast<double>(random.below(most));
    };
    const double out = 2e8 + some(2e8, 8), in = 2e8 + some(2e8, 8);
    const Machine machine = memory_and_disk(out, in, some(0.1, 5));
    const Profile profile = estimate(graph, machine);
    const LeastBudget least = least_budget(graph, machine);
    Bytes kept{};
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.persistent) kept += round_up(tensor.bytes, Bytes{64});
    }
    const PlanRequest request{graph, machine, profile, {least.bytes + kept, Bytes{1 << 30}}};
    Exhaustive search(request);
    if (search.size() == 0 || search.size() > 3) continue;
    const Seconds best = search.best();
    if (best.count() == std::numeric_limits<double>::infinity()) continue;
    ++compared;
    const Bound bound = step_bound(request);
    EXPECT_LE(bound.moving.count(), best.count() * (1 + 1e-9)) << "case " << seed;
    EXPECT_LE(bound.step.count(), bound.moving.count() * (1 + 1e-9));
    EXPECT_GE(bound.step.count(), bound.compute.count() * (1 - 1e-9));
    if (bound.moving <= bound.compute) continue;
    ++binding;
    if (bound.moving.count() > best.count() * 0.9) ++met;
  }
  // Bounds that never bind, or that nothing comes near, would be of no use.
  EXPECT_GT(compared, 50);
  EXPECT_GT(binding, 20);
  EXPECT_GT(met, binding / 2) << met << " of " << binding << " of " << compared;
}

/// With two tensors that fit beside each other, but not beside anything else.
struct LargeBeside : ByHand {
  struct {
    TensorId in, kept, large, out;
  } tensors{tensor("in", TensorKind::input, 6400), tensor("kept", TensorKind::activation, 64000),
            tensor("large", TensorKind::activation, 64000), tensor("out", TensorKind::activation, 6400)};
};

/// A chain of two kernels with a tensor between that does not fit beside what runs meanwhile.
TEST(Bounds, CountTheBytesThatCannotStay) {
  LargeBeside by_hand;
  Graph& graph = by_hand.graph;
  const auto [in, kept, large, out] = by_hand.tensors;
  by_hand.kernel({in}, {kept}, Seconds{1});
  by_hand.kernel({in}, {large}, Seconds{1});
  by_hand.kernel({large}, {out}, Seconds{1});
  by_hand.kernel({kept, out}, {out}, Seconds{1});
  graph.results = {out};
  ASSERT_TRUE(validate(graph)) << validate(graph).error().message;
  // 6400 bytes too few during the second kernel. They leave in 0.32 s before it and come in 0.64 s after it,
  // while no kernel runs: beside one there is no room for more of them.
  const Machine machine = memory_and_disk(20000, 10000, 0.5);
  const Profile profile = estimate(graph, machine);
  const PlanRequest request{graph, machine, profile, {Bytes{128000}, Bytes{1 << 30}}};
  const Bound bound = step_bound(request);
  EXPECT_DOUBLE_EQ(bound.compute.count(), 4);
  EXPECT_NEAR(bound.transfer.count(), 0.96, 1e-9);
  EXPECT_LE(bound.moving.count(), 4 + 0.96);
  EXPECT_GT(bound.moving.count(), 4.95);
  // Making it again takes a tenth of a second of its kernel, if fractions count.
  EXPECT_NEAR(bound.step.count(), 4.1, 1e-9);
}

/// A copy beside a kernel has its place meanwhile: what has none is waited for.
TEST(Bounds, CountCopiesThatNoKernelHides) {
  LargeBeside by_hand;
  Graph& graph = by_hand.graph;
  const auto [in, kept, large, out] = by_hand.tensors;
  by_hand.kernel({in}, {kept}, Seconds{10});
  by_hand.kernel({in}, {large}, Seconds{10});
  by_hand.kernel({large}, {out}, Seconds{10});
  by_hand.kernel({kept, out}, {out}, Seconds{10});
  graph.results = {out};
  ASSERT_TRUE(validate(graph)) << validate(graph).error().message;
  // All kernels are longer than the copies, but all but 1600 bytes cannot be there beside any.
  const Machine machine = memory_and_disk(20000, 10000, 0);
  const Profile profile = estimate(graph, machine);
  const PlanRequest request{graph, machine, profile, {Bytes{72000}, Bytes{1 << 30}}};
  const double moving = step_bound(request).moving.count();
  EXPECT_LE(moving, 40 + 3.2 + 6.4);
  EXPECT_GT(moving, 40 + 0.97 * (3.2 + 6.4) - 0.2);
}

/// What a kernel wrote over has to be made again before what it wrote.
TEST(Bounds, CountWhatWasThereBeforeAKernelWorkedInPlace) {
  LargeBeside by_hand;
  Graph& graph = by_hand.graph;
  const auto [in, kept, large, out] = by_hand.tensors;
  by_hand.kernel({in}, {kept}, Seconds{1});
  by_hand.kernel({kept}, {kept}, Seconds{1});
  by_hand.kernel({in}, {large}, Seconds{1});
  by_hand.kernel({large}, {out}, Seconds{1});
  by_hand.kernel({kept, out}, {out}, Seconds{1});
  graph.results = {out};
  ASSERT_TRUE(validate(graph)) << validate(graph).error().message;
  const Machine machine = memory_and_disk(20000, 10000, 0.5);
  const Profile profile = estimate(graph, machine);
  const PlanRequest request{graph, machine, profile, {Bytes{128000}, Bytes{1 << 30}}};
  // A tenth of both kernels, if fractions count.
  const double step = step_bound(request).step.count();
  EXPECT_LE(step, 5.2);
  EXPECT_GT(step, 5.19);
}

/// What is needed is made from what is not, which takes ten times as long.
TEST(Bounds, CountWhatRecomputationNeeds) {
  ByHand by_hand;
  Graph& graph = by_hand.graph;
  TensorId last = by_hand.tensor("in", TensorKind::input, 640);
  std::vector<TensorId> needed;
  for (int i = 0; i < 8; ++i) {
    const TensorId between = by_hand.tensor("between" + std::to_string(i), TensorKind::activation, 64000);
    needed.push_back(by_hand.tensor("needed" + std::to_string(i), TensorKind::activation, 64000));
    by_hand.kernel({last}, {between}, Seconds{10});
    by_hand.kernel({between}, {needed.back()}, Seconds{1});
    last = needed.back();
  }
  TensorId sum = by_hand.tensor("sum", TensorKind::activation, 64);
  by_hand.kernel({last}, {sum}, Seconds{1});
  for (int i = 6; i >= 0; --i) by_hand.kernel({needed[static_cast<std::size_t>(i)], sum}, {sum}, Seconds{1});
  graph.results = {sum};
  ASSERT_TRUE(validate(graph)) << validate(graph).error().message;
  // Links carry next to nothing, and 3.9 of the seven do not fit beside the kernel that makes the last.
  const Machine machine = memory_and_disk(1, 1, 0);
  const Profile profile = estimate(graph, machine);
  const PlanRequest request{graph, machine, profile, {Bytes{5 * 64000 + 6400}, Bytes{1 << 30}}};
  const Bound bound = step_bound(request);
  EXPECT_DOUBLE_EQ(bound.compute.count(), 96);
  EXPECT_GT(bound.step.count(), 96 + 3.85 * 11);
  EXPECT_LE(bound.step.count(), 96 + 3.9 * 11);
}

/// Kernels run again while others' values come in.
TEST(Bounds, LetRecomputationRunBesideCopies) {
  ByHand by_hand;
  Graph& graph = by_hand.graph;
  const TensorId in = by_hand.tensor("in", TensorKind::input, 640),
                 large = by_hand.tensor("large", TensorKind::activation, 512000);
  TensorId sum = by_hand.tensor("sum", TensorKind::activation, 64);
  std::vector<TensorId> made;
  for (int i = 0; i < 8; ++i) {
    made.push_back(by_hand.tensor("made" + std::to_string(i), TensorKind::activation, 64000));
    by_hand.kernel({in}, {made.back()}, Seconds{1});
  }
  by_hand.kernel({in}, {sum}, Seconds{100});  // meanwhile all of them leave
  by_hand.kernel({in}, {large}, Seconds{1});
  by_hand.kernel({large, sum}, {sum}, Seconds{1});
  for (const TensorId one : made) by_hand.kernel({one, sum}, {sum}, Seconds{0.01});
  graph.results = {sum};
  ASSERT_TRUE(validate(graph)) << validate(graph).error().message;
  // To come in takes each two seconds, to be made one: five of eight are made while three come.
  const Machine machine = memory_and_disk(32000, 32000, 0);
  const Profile profile = estimate(graph, machine);
  const PlanRequest request{graph, machine, profile, {Bytes{512000 + 6400}, Bytes{1 << 30}}};
  const Bound bound = step_bound(request);
  EXPECT_LE(bound.step.count(), 8 + 100 + 1 + 1 + 6);
  EXPECT_GT(bound.step.count(), 8 + 100 + 1 + 1 + 5.2);
  EXPECT_GE(make_plan("best", request).value().prediction.step.count(), bound.step.count());
}

/// What comes in and what leaves before a kernel may do so at once, also where all of the step is one block.
TEST(Bounds, LetOppositeLinksWorkAtOnce) {
  ByHand by_hand;
  Graph& graph = by_hand.graph;
  const TensorId weight = by_hand.tensor("weight", TensorKind::weight, 64000),
                 input = by_hand.tensor("input", TensorKind::input, 64000),
                 small = by_hand.tensor("small", TensorKind::activation, 64),
                 large = by_hand.tensor("large", TensorKind::activation, 128000),
                 out = by_hand.tensor("out", TensorKind::activation, 64);
  graph[weight].persistent = true;
  by_hand.kernel({weight}, {small}, Seconds{1e-6});
  by_hand.kernel({small}, {large}, Seconds{1e-6});
  by_hand.kernel({input}, {out}, Seconds{1e-6});
  graph.results = {out};
  ASSERT_TRUE(validate(graph)) << validate(graph).error().message;
  const Machine machine = memory_and_disk(64000, 64000, 0);
  const Profile profile = estimate(graph, machine);
  const PlanRequest request{graph, machine, profile, {Bytes{128000 + 128}, Bytes{1 << 30}}};
  // The weight comes while the input leaves, in a second; in another the input comes back.
  EXPECT_LE(step_bound(request).moving.count(), 2.001);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// The split graph as a graph: what is cut, what is not, and that it holds together.
#include <gtest/gtest.h>

#include <set>

#include "base/random.hpp"
#include "graph/passes.hpp"
#include "split/nets.hpp"
#include "terrace/graph_json.hpp"

namespace terrace {
namespace {

using test::classifier;
using test::largest_kernel;
using test::residual;
using test::tied;

Graph drawn_net(SplitMix& random) {
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
  };
  switch (random.below(6)) {
    case 0:
      return classifier(between(50, 700), between(20, 300),
                        random.below(2) == 0 ? Optimizer{} : test::adam());
    case 1:
      return tied(between(50, 900), between(8, 100));
    case 2:
      return test::lookup(between(100, 900), between(8, 100), {.momentum = 0});
    case 3:
      return test::pictures(between(2, 9), between(4, 20), between(2, 6) * 2);
    case 4:
      return test::recurrent(between(2, 30), between(4, 40));
    default:
      return residual(between(5, 80), between(4, 12));
  }
}

std::set<std::string> kernel_names(const Graph& graph) {
  std::set<std::string> names;
  for (const Kernel& kernel : graph.kernels) names.insert(kernel.name);
  return names;
}

TEST(Split, LeavesAGraphThatFitsAsItIs) {
  for (const Graph& graph : {classifier(64, 32), tied(50, 8), residual(8, 6)}) {
    const Split split = split_to_fit(graph, largest_kernel(graph));
    EXPECT_EQ(split.graph, graph);
    EXPECT_EQ(split.kernels, 0U);
    EXPECT_EQ(split.obstacle, "");
  }
}

TEST(Split, LeavesKernelsAloneThatFitBecauseTheyWorkInPlace) {
  Net net("gelus");
  const Value x = net.gelu(net.linear("first", net.input("x", {64, 8}), 64));
  net.train(net.binary_cross_entropy(net.linear("last", x, 4), 1), {});
  const Graph graph = std::move(net).finish();
  const Bytes three{3 * 64 * 64 * sizeof(float)};
  EXPECT_EQ(largest_kernel(graph), three) << "gradient, x and gradient";
  EXPECT_EQ(split_to_fit(graph, Bytes{three.count - 1}).kernels, 0U);
}

TEST(Split, NoKernelExceedsTheLimitWhereNothingStandsInTheWay) {
  int complete = 0, hindered = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    SplitMix random(seed);
    const Graph graph = drawn_net(random);
    const Bytes limit = largest_kernel(graph) * (15 + random.below(85)) / 100;
    const Split split = split_to_fit(graph, limit);
    const auto valid = validate(split.graph);
    ASSERT_TRUE(valid.ok()) << valid.error().message;
    EXPECT_EQ(parameters(split.graph), parameters(graph));
    EXPECT_EQ(graph_from_json(to_json_text(split.graph)).value(), split.graph);
    if (!split.obstacle.empty()) {
      ++hindered;
      continue;
    }
    complete += split.kernels > 0 ? 1 : 0;
    EXPECT_LE(largest_kernel(share_in_place(split.graph)), limit);
  }
  EXPECT_GT(complete, 100);
  EXPECT_GT(hindered, 10);
}

TEST(Split, SplittingTwiceForTheSameLimitChangesNothingMore) {
  const Graph graph = classifier(500, 200);
  const Bytes limit = largest_kernel(graph) / 3;
  const Graph once = split_to_fit(graph, limit).graph;
  EXPECT_EQ(split_to_fit(once, limit).graph, once);
}

TEST(Split, LeavesKernelsAloneThatTouchNothingThatIsCut) {
  const Graph graph = classifier(500, 200);
  const auto split = kernel_names(test::split(graph, 40));
  for (const char* name : {"middle:linear", "middle:sgd", "last:linear_backward_data", "first:relu"})
    EXPECT_EQ(split.count(name), 1U) << name;
  for (const char* name : {"first:linear", "first:linear_backward_weights", "first:sgd"}) {
    EXPECT_EQ(split.count(name), 0U) << name;
    EXPECT_EQ(split.count(std::string(name) + "/0"), 1U) << name;
    EXPECT_EQ(split.count(std::string(name) + "/1"), 1U) << name;
  }
}

TEST(Split, PartsKnowTheirRowsAndTheWholeIsStillKnown) {
  const Graph graph = classifier(500, 203);
  const Graph split = test::split(graph, 40);
  std::vector<std::string> names;
  for (const WholeTensor& whole : whole_tensors(split)) {
    names.push_back(whole.name);
    EXPECT_EQ(whole.shape, graph[find_tensor(graph, whole.name)].shape) << whole.name;
    std::int64_t rows = 0;
    for (const TensorId id : whole.parts) rows += split[id].shape[0];
    EXPECT_EQ(rows, whole.shape[0]) << whole.name;
  }
  std::vector<std::string> given;
  for (const WholeTensor& whole : whole_tensors(graph)) given.push_back(whole.name);
  EXPECT_EQ(names, given) << "in the order in which they are initialised";
  EXPECT_GT(find_parts(split, "first.weight").size(), 1U);
  EXPECT_GT(find_parts(split, "momentum of first.bias").size(), 1U);
  EXPECT_EQ(find_parts(split, "middle.weight").size(), 1U);
  EXPECT_TRUE(find_parts(split, "none").empty());
}

TEST(Split, NamesStayUniqueWhereANetHasSuchNamesAlready) {
  Net net("slashes");
  Value x = net.linear("a", net.input("x", {2, 300}), 64, {.bias = false, .initial = {}});
  x = net.mul(x, net.parameter("a.weight/1", {2, 64}, {Initial::Kind::constant, 1, 0}));
  net.train(net.cross_entropy(x, net.input("label", {2}, DataType::i32)), {});
  const Graph split = test::split(std::move(net).finish(), 40);
  EXPECT_TRUE(static_cast<bool>(find_tensor(split, "a.weight/1'")));
}

TEST(Split, SaysWhyAKernelStaysTooLarge) {
  const Graph graph = test::recurrent(2, 64);
  const Split split = split_to_fit(graph, largest_kernel(graph) / 2);
  EXPECT_EQ(split.obstacle,
            "cell:sgd#2 was not split: lstm cannot be worked on in parts of its weights, and sgd cannot be "
            "worked on in parts of the batch");
  EXPECT_EQ(split_to_fit(classifier(64, 32), Bytes{16}).obstacle.find("first:sgd was not split: "), 0U);
}

TEST(Split, FiltersInGroupsAreSplitByTheBatchAlone) {
  Net net("groups");
  Value x = net.conv2d("first", net.input("image", {6, 3, 12, 12}), 64, {.kernel = {3, 3}, .initial = {}});
  x = net.conv2d("grouped", x, 64, {.kernel = {3, 3}, .padding = {1, 1}, .groups = 64, .initial = {}});
  net.train(net.binary_cross_entropy(net.avg_pool2d(x, {}), 1), {});
  const Graph graph = std::move(net).finish();
  const Split split = split_to_fit(graph, largest_kernel(graph) * 60 / 100);
  EXPECT_EQ(split.obstacle, "");
  EXPECT_GT(split.kernels, 0U);
  EXPECT_EQ(find_parts(split.graph, "grouped.weight").size(), 1U);
}

TEST(Split, KeepsLargeActivationsInPartsAndPutsSmallOnesTogether) {
  const Graph graph = test::pictures(7, 16, 12);
  const Graph split = test::split(graph, 50);
  const auto names = kernel_names(split);
  const std::string large = "conv1:relu", small = "conv2:max_pool2d";
  EXPECT_FALSE(static_cast<bool>(find_tensor(split, large)));
  EXPECT_TRUE(static_cast<bool>(find_tensor(split, large + "/0")));
  EXPECT_TRUE(static_cast<bool>(find_tensor(split, small)));
  EXPECT_EQ(names.count("conv2:max_pool2d: joins " + small), 1U);
  EXPECT_EQ(names.count("conv1:conv2d: cuts image"), 1U);
  EXPECT_EQ(names.count("conv2:conv2d: cuts " + large), 0U);
  EXPECT_EQ(find_parts(split, "conv1.weight").size(), 1U);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "graph/passes.hpp"

#include <gtest/gtest.h>

#include "graph/interpreter.hpp"
#include "graph/nets.hpp"
#include "support/random_graph.hpp"
#include "support/stress_factor.hpp"
#include "terrace/lifetimes.hpp"

namespace terrace {
namespace {

Bytes peak(const Graph& graph) { return Lifetimes(graph).peak_bytes(); }

using Pass = Graph (*)(Graph);
const std::vector<std::pair<const char*, Pass>> kPasses{
    {"share_in_place", share_in_place},
    {"drop_unused", drop_unused},
    {"schedule", schedule},
    {"share, schedule", [](Graph graph) { return schedule(share_in_place(std::move(graph))); }},
    {"schedule, share, drop",
     [](Graph graph) { return drop_unused(share_in_place(schedule(std::move(graph)))); }},
    {"schedule, share, schedule",
     [](Graph graph) { return schedule(share_in_place(schedule(std::move(graph)))); }},
};

void expect_kept(const Graph& graph, const std::string& what) {
  const Outcome before = interpret(graph);
  for (const auto& [name, pass] : kPasses) {
    const Graph after = pass(graph);
    const auto valid = validate(after);
    ASSERT_TRUE(valid.ok()) << what << ", " << name << ": " << valid.error().message;
    EXPECT_EQ(interpret(after), before) << what << ", " << name;
    EXPECT_LE(peak(after), peak(graph)) << what << ", " << name;
  }
}

TEST(Passes, KeepTheResultsOfRandomGraphs) {
  for (int seed = 0; seed < 400 * stress_factor(); ++seed) {
    const RandomGraphOptions options{.kernels = 2 + static_cast<std::uint32_t>(seed % 25),
                                     .max_fan_in = 1 + static_cast<std::uint32_t>(seed % 3),
                                     .in_place_share = 0.8};
    expect_kept(random_graph(options, seed), "seed " + std::to_string(seed));
  }
}

TEST(Passes, KeepTheResultsOfNets) {
  for (const Graph& graph : all_nets()) expect_kept(graph, graph.name);
}

TEST(Passes, ShareMemoryInRandomGraphs) {
  std::size_t shared = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Graph graph = drop_unused(random_graph({.kernels = 20, .in_place_share = 0.8}, seed));
    shared += graph.tensors.size() - share_in_place(graph).tensors.size();
  }
  EXPECT_GT(shared, 100U);
}

Graph chain(int length) {
  Net net("chain");
  Value x = net.input("x", {4});
  for (int i = 0; i < length; ++i) x = net.relu(x);
  net.result(x);
  return std::move(net).finish();
}

TEST(ShareInPlace, LeavesOneTensorOfAChain) {
  const Graph graph = share_in_place(chain(5));
  // The input is not ours to write over.
  EXPECT_EQ(graph.tensors.size(), 2U);
  EXPECT_EQ(peak(graph), Bytes{32});
  EXPECT_EQ(graph[graph.results[0]].name, "input:relu");
}

TEST(ShareInPlace, KeepsAResultThatTheLastKernelReads) {
  Net net("n");
  const Value y = net.relu(net.relu(net.input("x", {4})));
  net.result(y);
  net.result(net.tanh(y));
  const Graph graph = std::move(net).finish();
  EXPECT_EQ(interpret(share_in_place(graph)), interpret(graph));
}

TEST(ShareInPlace, KeepsWhatIsReadLater) {
  Net net("n");
  const Value a = net.relu(net.input("x", {4})), b = net.relu(a);
  net.result(net.add(a, b));
  const Graph graph = share_in_place(std::move(net).finish());
  EXPECT_NE(graph.kernels[1].inputs[0].tensor, graph.kernels[1].outputs[0].tensor);
  EXPECT_EQ(graph.kernels[2].inputs[0].tensor, graph.kernels[2].outputs[0].tensor);
}

TEST(ShareInPlace, DoesNotWriteOverWhatIsReadTwiceAtOnce) {
  Net net("n");
  const Value a = net.relu(net.input("x", {4}));
  net.result(net.add(a, a));
  const Graph graph = share_in_place(std::move(net).finish());
  EXPECT_NE(graph.kernels[1].inputs[0].tensor, graph.kernels[1].outputs[0].tensor);
}

TEST(ShareInPlace, AsksForTheSameBytesTypeAndLayout) {
  const auto shares = [](const std::function<void(Tensor&)>& change) {
    Graph graph = chain(3);
    change(graph[find_tensor(graph, "input:relu#2")]);
    return share_in_place(graph).tensors.size() < graph.tensors.size() - 1;
  };
  EXPECT_TRUE(shares([](Tensor&) {}));
  EXPECT_FALSE(shares([](Tensor& tensor) { tensor.bytes = Bytes{64}; }));
  EXPECT_FALSE(shares([](Tensor& tensor) { tensor.type = DataType::i32; }));
  EXPECT_FALSE(shares([](Tensor& tensor) { tensor.layout = "blocked"; }));
  EXPECT_FALSE(shares([](Tensor& tensor) { tensor.persistent = true; }));
}

TEST(DropUnused, KeepsWhatIsUsedResultsAndStateAlone) {
  Net net("n");
  const Value given = net.input("given", {4}), unused = net.input("unused", {4});
  net.parameter("unused weight", {4}, {});
  net.input("unused input", {4});
  net.result(net.relu(given));
  net.result(unused);
  const Graph graph = std::move(net).finish();
  const Graph dropped = drop_unused(graph);
  EXPECT_EQ(dropped.tensors.size(), 4U);
  EXPECT_FALSE(find_tensor(dropped, "unused input"));
  EXPECT_TRUE(find_tensor(dropped, "unused weight"));
  EXPECT_EQ(dropped[dropped.results[1]].name, "unused");
  EXPECT_EQ(drop_unused(dropped), dropped);
}

}  // namespace
}  // namespace terrace

// Every rule of a valid graph, broken once.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "support/random_graph.hpp"
#include "terrace/graph.hpp"
#include "terrace/operation.hpp"

namespace terrace {
namespace {

/// x -> relu -> y -> "twice" -> z, with a workspace s for the second.
Graph small() {
  Graph graph;
  graph.layers = {"layer"};
  for (const char* name : {"x", "y", "z", "s"}) {
    graph.tensors.emplace_back();
    graph.tensors.back().name = name;
    graph.tensors.back().shape = {2, 3};
    graph.tensors.back().bytes = Bytes{24};
  }
  graph.tensors[0].kind = TensorKind::input;
  graph.tensors[3].kind = TensorKind::workspace;
  const auto whole = [](std::uint32_t id) { return Operand{{id}, {2, 3}, Bytes{24}, {}}; };
  Kernel relu;
  relu.name = "relu";
  relu.operation = to_string(Operation::relu);
  relu.inputs = {whole(0)};
  relu.outputs = {whole(1)};
  relu.in_place = {{0, 0}};
  Kernel twice;
  twice.name = "twice";
  twice.operation = "acme.twice";
  twice.inputs = {whole(1)};
  twice.outputs = {whole(2)};
  twice.workspace = {3};
  twice.variants = {{"fast", Bytes{24}, Seconds(1)}};
  graph.kernels = {relu, twice};
  graph.results = {{2}};
  return graph;
}

std::string fault(const std::function<void(Graph&)>& breaking) {
  Graph graph = small();
  breaking(graph);
  const auto valid = validate(graph);
  if (!valid) return valid.error().message;
  const auto known = check_operations(graph);
  return known.ok() ? "valid" : known.error().message;
}

TEST(Validate, AcceptsASmallGraph) {
  EXPECT_EQ(fault([](Graph&) {}), "valid");
  EXPECT_TRUE(validate(Graph{}).ok());
}

TEST(Validate, AcceptsRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto valid = validate(random_graph({.kernels = 20}, seed));
    EXPECT_TRUE(valid.ok()) << seed << ": " << valid.error().message;
  }
}

TEST(Validate, ChecksTensors) {
  EXPECT_EQ(fault([](Graph& g) { g.tensors[1].name.clear(); }), "tensor 1 has no name");
  EXPECT_EQ(fault([](Graph& g) { g.tensors[1].name = "x"; }), "x is the name of two tensors");
  EXPECT_EQ(fault([](Graph& g) { g.tensors[1].bytes = Bytes{23}; }),
            "y has 23 bytes, but f32 [2, 3] takes 24");
  EXPECT_EQ(fault([](Graph& g) { g.tensors[1].shape[0] = -2; }), "y has an impossible shape [-2, 3]");
  EXPECT_EQ(fault([](Graph& g) {
              g.tensors[1].shape = {4294967296, 4294967296};
            }),
            "y has an impossible shape [4294967296, 4294967296]");
  EXPECT_EQ(fault([](Graph& g) { g.tensors[1].bytes = Bytes{std::uint64_t{1} << 63U}; }),
            "y brings the tensors' bytes to more than 63 bits count");
  EXPECT_EQ(fault([](Graph& g) { g.tensors[1].initial.b = NAN; }),
            "y starts with a number that is not finite");
  EXPECT_EQ(fault([](Graph& g) { g.tensors[3].persistent = true; }),
            "s is a workspace and cannot be persistent");
}

TEST(Validate, ChecksIds) {
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].layer = 1; }), "relu belongs to a layer that does not exist");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].inputs[0].tensor = {4}; }),
            "relu has an operand that does not exist");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].outputs[0].tensor = {}; }),
            "relu has an operand that does not exist");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[1].workspace = {9}; }),
            "twice has a workspace that does not exist");
  EXPECT_EQ(fault([](Graph& g) { g.results = {{9}}; }), "the graph names a result that does not exist");
  EXPECT_EQ(fault([](Graph& g) {
              g.kernels[0].in_place = {{1, 0}};
            }),
            "relu pairs an operand in place that it does not have");
  EXPECT_EQ(fault([](Graph& g) {
              g.kernels[0].in_place = {{0, 1}};
            }),
            "relu pairs an operand in place that it does not have");
}

TEST(Validate, ChecksViews) {
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].inputs[0].shape = {6}; }), "valid");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].inputs[0].shape = {5}; }),
            "relu sees x of shape [2, 3] as [5]");
  EXPECT_EQ(fault([](Graph& g) {
              g.kernels[0].inputs[0].shape = {4294967296, 4294967296, 6};
            }),
            "relu sees x of shape [2, 3] as [4294967296, 4294967296, 6]");
}

TEST(Validate, LeavesOperationsItDoesNotKnowToTheirBackend) {
  EXPECT_EQ(fault([](Graph& g) {
              g.kernels[0].operation = "acme.relu";
              g.kernels[0].inputs.clear();
              g.kernels[0].attributes = {{"anything", std::string("goes")},
                                         {"sizes", std::vector<std::int64_t>{3, 1}}};
            }),
            "valid");
}

TEST(Validate, ChecksOperations) {
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].inputs.clear(); }), "relu has 0 inputs, but relu reads (x)");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].outputs.push_back(g.kernels[1].outputs[0]); }),
            "relu has 2 outputs, but relu writes (y)");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].attributes = to_attributes(Window{}); }),
            "relu has the attribute dilation, which relu does not take: it has none");
  EXPECT_EQ(fault([](Graph& g) {
              g.kernels[0].operation = to_string(Operation::leaky_relu);
              g.kernels[0].attributes = to_attributes(SlopeAttributes{INFINITY});
            }),
            "relu has an impossible slope");
  EXPECT_EQ(fault([](Graph& g) {
              Window window;
              window.stride[1] = -1;
              g.kernels[0].operation = to_string(Operation::avg_pool2d);
              g.kernels[0].attributes = to_attributes(window);
            }),
            "relu has an impossible stride: a pair of whole numbers not below zero, of height and width, is "
            "wanted");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].operation.clear(); }), "relu has an operation without a name");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].attributes.set("", true); }),
            "relu has an attribute without a name");
  EXPECT_EQ(fault([](Graph& g) {
              g.kernels[1].name.clear();
              g.kernels[1].layer = 7;
            }),
            "a kernel without a name belongs to a layer that does not exist");
}

TEST(Validate, ChecksTheOrderOfWritingAndReading) {
  EXPECT_EQ(fault([](Graph& g) { std::swap(g.kernels[0], g.kernels[1]); }),
            "twice reads y before any kernel writes it");
  EXPECT_EQ(fault([](Graph& g) {
              std::swap(g.kernels[0], g.kernels[1]);
              g.tensors[1].persistent = true;
            }),
            "valid");
  EXPECT_EQ(fault([](Graph& g) { g.kernels.pop_back(); }), "z is a result that no kernel writes");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[1].outputs.push_back(g.kernels[1].outputs[0]); }),
            "twice writes z twice");
}

TEST(Validate, ChecksWorkspaces) {
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].workspace = {3}; }),
            "twice shares the workspace s with another kernel");
  EXPECT_EQ(fault([](Graph& g) { g.tensors[3].kind = TensorKind::activation; }),
            "twice takes s for a workspace, which is of kind activation");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[1].outputs[0].tensor = {3}; }),
            "twice has the workspace s as an operand");
}

TEST(Validate, ChecksWork) {
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].flops = -1; }), "relu does -1 operations");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[0].flops = INFINITY; }), "relu does inf operations");
  EXPECT_EQ(fault([](Graph& g) { g.kernels[1].variants[0].time = Seconds(-1); }),
            "twice takes -1 s as variant 'fast'");
}

}  // namespace
}  // namespace terrace

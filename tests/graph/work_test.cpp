// Floating-point operations against numbers counted by hand, and bytes touched.
#include <gtest/gtest.h>

#include <map>

#include "graph/nets.hpp"
#include "terrace/net.hpp"

namespace terrace {
namespace {

/// Flops by operation, of a net that has each at most once.
std::map<Operation, double> flops_of(const Graph& graph) {
  std::map<Operation, double> flops;
  for (const Kernel& kernel : graph.kernels) flops[operation_of(kernel)] = kernel.flops;
  return flops;
}

Graph one_layer(const std::function<Value(Net&)>& layer) {
  Net net("n");
  net.train(net.binary_cross_entropy(layer(net), 1), {});
  return std::move(net).finish();
}

TEST(Work, OfConvolutionIsTheSameInAllThreeDirections) {
  const Graph graph = one_layer([](Net& net) {
    const Value x = net.conv2d("first", net.input("x", {2, 3, 8, 8}), 4, square(1));
    return net.conv2d("conv", x, 6, square(3, 0, 2));
  });
  // 2 images of 6 channels of 6x6; each element is 2 channels of a 3x3 window, times and plus.
  const double expected = 2.0 * (2 * 6 * 6 * 6) * (2 * 3 * 3);
  double found = 0;
  for (const Kernel& kernel : graph.kernels) {
    if (graph.layers[kernel.layer] == "conv" && operation_of(kernel) >= Operation::conv2d &&
        operation_of(kernel) <= Operation::conv2d_backward_weights) {
      EXPECT_EQ(kernel.flops, expected) << kernel.name;
      found += 1;
    }
  }
  EXPECT_EQ(found, 3);
}

TEST(Work, OfTransposedConvolutionCountsTheSmallImage) {
  const Graph graph = one_layer([](Net& net) {
    const Value x = net.relu(net.linear("fc", net.input("x", {2, 5}), 12));
    Net::Conv options = square(4, 1);
    options.stride = {2, 2};
    return net.conv_transpose2d("up", net.reshape(x, {2, 3, 2, 2}), 7, options);
  });
  // Every element of the 3x2x2 image meets a filter of 7 channels of 4x4.
  const double expected = 2.0 * (2 * 3 * 2 * 2) * (7 * 4 * 4);
  auto flops = flops_of(graph);
  EXPECT_EQ(flops[Operation::conv_transpose2d], expected);
  EXPECT_EQ(flops[Operation::conv_transpose2d_backward_data], expected);
  EXPECT_EQ(flops[Operation::conv_transpose2d_backward_weights], expected);
}

TEST(Work, OfLinearIsTheSameInAllThreeDirections) {
  const Graph graph = one_layer([](Net& net) {
    return net.linear("b", net.lstm("a", net.input("x", {3, 2, 5}), 7), 4);
  });
  auto flops = flops_of(graph);
  const double expected = 2.0 * 6 * 7 * 4;
  EXPECT_EQ(flops[Operation::linear], expected);
  EXPECT_EQ(flops[Operation::linear_backward_data], expected);
  EXPECT_EQ(flops[Operation::linear_backward_weights], expected);
}

TEST(Work, OfLstmCountsBothMatricesAtEveryStep) {
  const Graph graph = one_layer([](Net& net) { return net.lstm("l", net.input("x", {3, 2, 5}), 7); });
  auto flops = flops_of(graph);
  EXPECT_EQ(flops[Operation::lstm], 3 * 2 * 2.0 * (28 * 5 + 28 * 7));
  EXPECT_EQ(flops[Operation::lstm_backward], 2 * flops[Operation::lstm]);
}

TEST(Work, OfMatmulCountsTheInnerExtent) {
  Net net("n");
  const Value a = net.input("a", {4, 2, 3}), b = net.input("b", {4, 3, 5});
  net.matmul(a, b);
  EXPECT_EQ(net.graph().kernels.back().flops, 4 * 2.0 * 2 * 3 * 5);
  net.matmul(b, a, {.transpose_a = true, .transpose_b = true});
  EXPECT_EQ(net.graph().kernels.back().flops, 4 * 2.0 * 2 * 3 * 5);
}

TEST(Work, OfPoolingCountsTheWindow) {
  Net net("n");
  net.max_pool2d(net.input("x", {2, 3, 9, 9}), {.kernel = {3, 3}});
  EXPECT_EQ(net.graph().kernels.back().flops, 2 * 3 * 3 * 3 * 9.0);
}

TEST(Work, OfMovingBytesIsNone) {
  Net net("n");
  const Value x = net.input("x", {2, 3});
  net.concat({x, x});
  EXPECT_EQ(net.graph().kernels.back().flops, 0);
}

TEST(Work, TouchesWholeTensors) {
  for (const Graph& graph : all_nets()) {
    for (const Kernel& kernel : graph.kernels) {
      if (operation_of(kernel) == Operation::embedding) continue;
      for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
        for (const Operand& operand : *operands) EXPECT_EQ(operand.touched, graph[operand.tensor].bytes);
      }
    }
  }
}

TEST(Work, TouchesOnlyTheRowsThatAreLookedUp) {
  Net net("n");
  const Value few = net.input("few", {3}, DataType::i32), many = net.input("many", {300}, DataType::i32);
  net.embedding("e", few, 100, 6);
  EXPECT_EQ(net.graph().kernels.back().inputs[0].touched, Bytes{3 * 6 * 4});
  net.embedding("e", many, 100, 6);
  EXPECT_EQ(net.graph().kernels.back().inputs[0].touched, Bytes{100 * 6 * 4});
}

}  // namespace
}  // namespace terrace

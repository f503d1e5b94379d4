// What Net builds: shapes, names, layers and weights.
#include "terrace/net.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/nets.hpp"
#include "terrace/operation.hpp"

namespace terrace {
namespace {

TEST(Net, SlidesConvolutionsAsPyTorchDoes) {
  Net net("n");
  const Value x = net.input("x", {2, 6, 9, 11});
  Net::Conv options = square(3, 1);
  EXPECT_EQ(net.conv2d("a", x, 4, options).shape, (Shape{2, 4, 9, 11}));
  options.stride = {2, 3};
  EXPECT_EQ(net.conv2d("b", x, 4, options).shape, (Shape{2, 4, 5, 4}));
  options.dilation = {2, 1};
  options.groups = 2;
  EXPECT_EQ(net.conv2d("c", x, 4, options).shape, (Shape{2, 4, 4, 4}));
  const Graph& graph = net.graph();
  EXPECT_EQ(graph[find_tensor(graph, "a.weight")].shape, (Shape{4, 6, 3, 3}));
  EXPECT_EQ(graph[find_tensor(graph, "a.bias")].shape, (Shape{4}));
  EXPECT_EQ(graph[find_tensor(graph, "c.weight")].shape, (Shape{4, 3, 3, 3}));
}

TEST(Net, GrowsTransposedConvolutions) {
  Net net("n");
  const Value x = net.input("x", {2, 6, 4, 5});
  Net::Conv options = square(4, 1);
  options.stride = {2, 2};
  options.bias = false;
  EXPECT_EQ(net.conv_transpose2d("up", x, 3, options).shape, (Shape{2, 3, 8, 10}));
  EXPECT_EQ(net.graph()[find_tensor(net.graph(), "up.weight")].shape, (Shape{6, 3, 4, 4}));
  EXPECT_FALSE(find_tensor(net.graph(), "up.bias"));
}

TEST(Net, PoolsAndFlattens) {
  Net net("n");
  const Value x = net.input("x", {2, 6, 9, 8});
  EXPECT_EQ(net.max_pool2d(x, {}).shape, (Shape{2, 6, 4, 4}));
  EXPECT_EQ(net.avg_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}).shape,
            (Shape{2, 6, 5, 4}));
  EXPECT_EQ(net.global_avg_pool2d(x).shape, (Shape{2, 6, 1, 1}));
  EXPECT_EQ(net.flatten(x).shape, (Shape{2, 432}));
}

TEST(Net, LinearTakesAnyLeadingExtents) {
  Net net("n");
  const Value x = net.input("x", {2, 5, 7});
  EXPECT_EQ(net.linear("fc", x, 3).shape, (Shape{2, 5, 3}));
  const Kernel& kernel = net.graph().kernels.back();
  EXPECT_EQ(kernel.inputs[0].shape, (Shape{10, 7}));
  EXPECT_EQ(kernel.outputs[0].shape, (Shape{10, 3}));
  EXPECT_EQ(net.graph()[kernel.inputs[1].tensor].shape, (Shape{3, 7}));
}

TEST(Net, MultipliesMatrices) {
  Net net("n");
  const Value a = net.input("a", {4, 2, 3}), b = net.input("b", {4, 3, 5}), c = net.input("c", {4, 5, 3});
  EXPECT_EQ(net.matmul(a, b).shape, (Shape{4, 2, 5}));
  EXPECT_EQ(net.matmul(a, c, {.transpose_b = true}).shape, (Shape{4, 2, 5}));
  EXPECT_EQ(net.matmul(b, a, {.transpose_a = true, .transpose_b = true}).shape, (Shape{4, 5, 2}));
}

TEST(Net, SplitsAndMergesHeads) {
  Net net("n");
  const auto parts = net.split_heads(net.input("x", {2, 5, 24}), {3, 4});
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[2].shape, (Shape{2, 4, 5, 2}));
  EXPECT_EQ(net.merge_heads(parts[0], 4).shape, (Shape{2, 5, 8}));
}

TEST(Net, LooksUpEmbeddingsAndRunsLstms) {
  Net net("n");
  const Value tokens = net.input("t", {5, 2}, DataType::i32);
  const Value x = net.embedding("e", tokens, 100, 6);
  EXPECT_EQ(x.shape, (Shape{5, 2, 6}));
  EXPECT_EQ(net.lstm("l", x, 7).shape, (Shape{5, 2, 7}));
  EXPECT_EQ(net.graph()[find_tensor(net.graph(), "l.weight_ih")].shape, (Shape{28, 6}));
  EXPECT_EQ(net.graph()[find_tensor(net.graph(), "l.weight_hh")].shape, (Shape{28, 7}));
}

TEST(Net, ConcatenatesAlongAnAxis) {
  Net net("n");
  const Value a = net.input("a", {2, 3, 4}), b = net.input("b", {2, 5, 4});
  EXPECT_EQ(net.concat({a, b}).shape, (Shape{2, 8, 4}));
  EXPECT_EQ(net.concat({a, a}, 2).shape, (Shape{2, 3, 8}));
}

TEST(Net, KeepsShapesOfPointwiseFunctions) {
  Net net("n");
  const Value x = net.input("x", {2, 3});
  const Value y = net.sigmoid(net.tanh(net.gelu(net.leaky_relu(net.relu(net.softmax(x)), 0.1F))));
  EXPECT_EQ(net.mul(net.add(x, y), y).shape, (Shape{2, 3}));
  EXPECT_EQ(net.layer_norm("ln", y).shape, (Shape{2, 3}));
}

TEST(Net, DropsNothingInInferenceOrWithoutNeed) {
  Net training("n"), inference("n", Net::Mode::inference);
  EXPECT_EQ(inference.dropout(inference.input("x", {2}), 0.5F).tensor, TensorId{0});
  EXPECT_EQ(training.dropout(training.input("x", {2}), 0).tensor, TensorId{0});
  training.dropout(training.dropout({TensorId{0}, {2}}, 0.5F), 0.5F);
  const auto stream = [&](std::size_t k) {
    return attributes_as<DropoutAttributes>(training.graph().kernels[k]).stream;
  };
  EXPECT_NE(stream(0), stream(1));
}

TEST(Net, SharesAWeightGivenTwice) {
  Net net("n");
  const Value x = net.input("x", {2, 4});
  net.linear("fc", net.linear("fc", x, 4), 4);
  EXPECT_EQ(parameters(net.graph()), 4 * 4 + 4);
}

TEST(Net, PrefixesNamesByScope) {
  Net net("n");
  const Value x = net.input("x", {2, 4});
  {
    const auto outer = net.scope("outer");
    const auto inner = net.scope("inner");
    net.linear("fc", x, 4);
  }
  net.linear("fc", x, 4);
  EXPECT_TRUE(find_tensor(net.graph(), "outer.inner.fc.weight"));
  EXPECT_TRUE(find_tensor(net.graph(), "fc.weight"));
}

TEST(Net, StartsALayerAtEveryWeightMatrix) {
  const Graph graph = mlp();
  EXPECT_EQ(graph.layers, (std::vector<std::string>{"input", "fc1", "fc2", "fc3"}));
  EXPECT_EQ(operation_of(graph.kernels[1]), Operation::relu);
  EXPECT_EQ(graph.layers[graph.kernels[1].layer], "fc1");
}

TEST(Net, StartsWeightsAsPyTorchDoes) {
  Net net("n");
  net.linear("fc", net.input("x", {2, 16}), 4);
  const Tensor& weight = net.graph()[find_tensor(net.graph(), "fc.weight")];
  EXPECT_EQ(weight.initial, (Initial{Initial::Kind::uniform, -0.25F, 0.25F}));
  EXPECT_TRUE(weight.persistent);
  EXPECT_EQ(weight.kind, TensorKind::weight);
}

TEST(Net, NormalisesWithRunningStatisticsInPlace) {
  const Graph graph = residual();
  const auto bn = std::find_if(graph.kernels.begin(), graph.kernels.end(),
                               [](const Kernel& k) { return operation_of(k) == Operation::batch_norm; });
  ASSERT_NE(bn, graph.kernels.end());
  EXPECT_EQ(bn->inputs[3].tensor, bn->outputs[3].tensor);
  EXPECT_EQ(bn->inputs[4].tensor, bn->outputs[4].tensor);
  EXPECT_TRUE(graph[bn->inputs[3].tensor].persistent);
  ASSERT_EQ(bn->outputs.size(), 6U);
  EXPECT_EQ(graph[bn->outputs[5].tensor].bytes, Bytes{2 * 8 * 16 * 16 / 8});
}

TEST(Net, LeavesNothingForBackwardInInference) {
  const Graph graph = residual(Net::Mode::inference);
  for (const Kernel& kernel : graph.kernels) {
    EXPECT_EQ(kernel.outputs.size(), 1U) << kernel.name;
    EXPECT_EQ(kernel.phase, Phase::forward);
  }
}

TEST(Net, TellsASecondGradientFromTheGradientOfASecondTensor) {
  Net net("two parts");
  std::vector<Gradients> gradients;
  for (const std::string part : {"first", "second"}) {
    const Value y = net.linear("fc", net.input(part, {2, 3}), 4);
    const Value label = net.input(part + " label", {2}, DataType::i32);
    gradients.push_back(net.backward({net.cross_entropy(net.add(net.sigmoid(y), net.tanh(y)), label)}));
  }
  net.update(net.accumulate(gradients[0], gradients[1]), {});
  EXPECT_TRUE(validate(std::move(net).finish()));
}

TEST(Net, BuildsValidGraphs) {
  for (const Graph& graph : all_nets()) {
    const auto valid = validate(graph);
    EXPECT_TRUE(valid.ok()) << (valid.ok() ? "" : valid.error().message);
  }
}

TEST(Net, AppendsAnyOperationOfTheTableAndDifferentiatesIt) {
  const auto train = [](auto activation) {
    Net net("n");
    const Value x = net.linear("fc", net.input("x", {4, 3}), 2);
    net.train(net.cross_entropy(activation(net, x), net.input("label", {4}, DataType::i32)), {});
    return std::move(net).finish();
  };
  const Graph applied = train([](Net& net, Value x) {
    return net.apply(Operation::gelu, {x}, x.shape, GeluAttributes{.tanh_approximation = true});
  });
  Graph named = train([](Net& net, Value x) { return net.gelu(x, {.tanh_approximation = true}); });
  for (Kernel& kernel : named.kernels) {
    if (kernel.operation == "gelu") kernel.in_place.clear();  // what apply() cannot know
  }
  EXPECT_EQ(applied, named);
}

TEST(Net, TakesAnEmptyBatch) {
  Net net("n");
  const Value x = net.linear("fc2", net.relu(net.linear("fc1", net.input("x", {0, 4}), 3)), 2);
  net.train(net.cross_entropy(x, net.input("label", {0}, DataType::i32)), {});
  EXPECT_NO_THROW(std::move(net).finish());
}

}  // namespace
}  // namespace terrace

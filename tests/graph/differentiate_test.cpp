// The structure of backward passes: which gradients are made, by what, from what. (Their values are the
// kernels' business.)
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/nets.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/operation.hpp"

namespace terrace {
namespace {

std::vector<const Kernel*> kernels_of(const Graph& graph, Operation operation) {
  std::vector<const Kernel*> found;
  for (const Kernel& kernel : graph.kernels) {
    if (operation_of(kernel) == operation) found.push_back(&kernel);
  }
  return found;
}

std::size_t count(const Graph& graph, Operation operation) { return kernels_of(graph, operation).size(); }

std::string name_of(const Graph& graph, const Operand& operand) { return graph[operand.tensor].name; }

/// Whether any backward kernel reads the tensor.
bool is_kept(const Graph& graph, TensorId id) {
  return std::any_of(graph.kernels.begin(), graph.kernels.end(), [&](const Kernel& kernel) {
    return kernel.phase == Phase::backward && std::any_of(kernel.inputs.begin(), kernel.inputs.end(),
                                                          [&](const Operand& in) { return in.tensor == id; });
  });
}

Value loss_of(Net& net, Value x) { return net.binary_cross_entropy(x, 1); }

TEST(Differentiation, FindsAGradientForEachWeightOnce) {
  for (const Graph& graph : {mlp(), residual(), transformer(), recurrent(), adversarial(), in_parts()}) {
    std::map<std::string, int> updates;
    for (const Kernel& kernel : graph.kernels) {
      if (kernel.phase == Phase::update) ++updates[name_of(graph, kernel.inputs[0])];
    }
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.kind == TensorKind::weight) {
        EXPECT_EQ(updates[tensor.name], 1) << graph.name << " " << tensor.name;
      }
    }
  }
}

TEST(Differentiation, ReturnsGradientsInTheOrderAndShapeOfTheWeights) {
  Net net("n");
  const Value x = net.linear("b", net.relu(net.linear("a", net.input("x", {4, 6}), 5)), 3);
  const Gradients gradients = net.backward({loss_of(net, x)});
  std::vector<std::string> names;
  for (const auto& [weight, gradient, layer] : gradients) {
    names.push_back(net.graph()[weight].name);
    EXPECT_EQ(gradient.shape, net.graph()[weight].shape);
    EXPECT_EQ(net.graph()[gradient.tensor].kind, TensorKind::gradient);
    EXPECT_EQ(net.graph().layers[layer], names.back().substr(0, 1));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a.weight", "a.bias", "b.weight", "b.bias"}));
}

TEST(Differentiation, AddsTheGradientsOfATensorReadTwice) {
  Net net("n");
  const Value x = net.relu(net.linear("a", net.input("x", {4, 4}), 4));
  net.backward({loss_of(net, net.add(net.linear("b", x, 4), net.linear("c", x, 4)))});
  const auto sums = kernels_of(net.graph(), Operation::add);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[1]->phase, Phase::backward);
  // One part from each reader, and relu's backward reads the sum.
  const auto parts = kernels_of(net.graph(), Operation::linear_backward_data);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(sums[1]->inputs[0].tensor, parts[0]->outputs[0].tensor);
  EXPECT_EQ(sums[1]->inputs[1].tensor, parts[1]->outputs[0].tensor);
  EXPECT_EQ(kernels_of(net.graph(), Operation::relu_backward)[0]->inputs[0].tensor,
            sums[1]->outputs[0].tensor);
}

TEST(Differentiation, AddsTheGradientsOfASharedWeight) {
  const Graph graph = transformer();
  const auto tables = kernels_of(graph, Operation::embedding_backward);
  ASSERT_EQ(tables.size(), 2U);
  const TensorId from_lookup = tables[1]->outputs[0].tensor;
  const auto sums = kernels_of(graph, Operation::add);
  EXPECT_TRUE(std::any_of(sums.begin(), sums.end(),
                          [&](const Kernel* sum) { return sum->inputs[1].tensor == from_lookup; }));
}

TEST(Differentiation, DoublesWhatIsAddedToItself) {
  Net net("n");
  const Value x = net.linear("a", net.input("x", {4, 4}), 4);
  net.backward({loss_of(net, net.add(x, x))});
  const auto sums = kernels_of(net.graph(), Operation::add);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[1]->inputs[0].tensor, sums[1]->inputs[1].tensor);
}

TEST(Differentiation, GivesBothSummandsOneGradient) {
  Net net("n");
  const Value x = net.input("x", {4, 4});
  net.backward({loss_of(net, net.add(net.linear("a", x, 4), net.linear("b", x, 4)))});
  const auto weights = kernels_of(net.graph(), Operation::linear_backward_weights);
  ASSERT_EQ(weights.size(), 2U);
  EXPECT_EQ(weights[0]->inputs[1].tensor, weights[1]->inputs[1].tensor);
}

TEST(Differentiation, ChoosesWeightsByPrefix) {
  Net net("n");
  Value x = net.linear("a.fc", net.input("x", {4, 6}), 5);
  x = net.linear("b.fc", x, 3);
  const Gradients gradients = net.backward({loss_of(net, x)}, "b");
  ASSERT_EQ(gradients.size(), 2U);
  EXPECT_EQ(net.graph()[gradients[0].weight].name, "b.fc.weight");
  // Nothing below b is worth a kernel.
  EXPECT_EQ(count(net.graph(), Operation::linear_backward_data), 0U);
  EXPECT_EQ(count(net.graph(), Operation::linear_backward_weights), 1U);
}

TEST(Differentiation, GoesThroughWeightsItDoesNotWant) {
  Net net("n");
  Value x = net.linear("a.fc", net.input("x", {4, 6}), 5);
  x = net.linear("b.fc", x, 3);
  EXPECT_EQ(net.backward({loss_of(net, x)}, "a").size(), 2U);
  EXPECT_EQ(count(net.graph(), Operation::linear_backward_data), 1U);
  EXPECT_EQ(count(net.graph(), Operation::linear_backward_weights), 1U);
}

TEST(Differentiation, FindsTheGradientOfABiasAlone) {
  Net net("n");
  const Value x = net.linear("fc", net.input("x", {4, 6}), 5);
  const Gradients gradients = net.backward({loss_of(net, x)}, "fc.bias");
  ASSERT_EQ(gradients.size(), 1U);
  EXPECT_EQ(net.graph()[gradients[0].weight].name, "fc.bias");
}

TEST(Differentiation, LeavesDetachedPartsAlone) {
  Net net("n");
  const Value x = net.input("x", {4, 6});
  net.result(net.relu(net.linear("aside", x, 5)));
  const Gradients gradients = net.backward({loss_of(net, net.linear("main", x, 5))});
  EXPECT_EQ(gradients.size(), 2U);
  EXPECT_EQ(count(net.graph(), Operation::relu_backward), 0U);
}

TEST(Differentiation, ComputesNothingWithoutAWantedWeight) {
  Net net("n");
  const Value x = net.linear("fc", net.input("x", {4, 6}), 5);
  EXPECT_TRUE(net.backward({loss_of(net, x)}, "other").empty());
  EXPECT_EQ(net.graph().kernels.back().phase, Phase::forward);
}

TEST(Differentiation, ComputesNoGradientForInputs) {
  const Graph graph = residual();
  for (const Kernel* kernel : kernels_of(graph, Operation::conv2d_backward_data)) {
    EXPECT_NE(name_of(graph, kernel->inputs[1]), "conv0.weight");
  }
  EXPECT_EQ(count(graph, Operation::conv2d_backward_data) + 1,
            count(graph, Operation::conv2d_backward_weights));
  EXPECT_FALSE(find_tensor(graph, "gradient of image"));
}

TEST(Differentiation, ComputesGradientsOfWeightsFirst) {
  const Graph graph = mlp();
  const auto position = [&](Operation operation) {
    return kernels_of(graph, operation)[0] - graph.kernels.data();
  };
  EXPECT_LT(position(Operation::linear_backward_weights), position(Operation::linear_backward_data));
}

TEST(Differentiation, MakesLossesResults) {
  const Graph graph = adversarial();
  EXPECT_EQ(graph.results.size(), 3U);
}

struct Kept {
  const char* function;
  Value (*build)(Net&, Value);
  bool input, output;
};

TEST(Differentiation, KeepsOnlyWhatBackwardReads) {
  // In front stands something that keeps nothing itself, behind too.
  const std::vector<Kept> cases{
      {"relu", [](Net& net, Value x) { return net.relu(x); }, false, true},
      {"leaky_relu", [](Net& net, Value x) { return net.leaky_relu(x, 0.1F); }, false, true},
      {"gelu", [](Net& net, Value x) { return net.gelu(x); }, true, false},
      {"tanh", [](Net& net, Value x) { return net.tanh(x); }, false, true},
      {"sigmoid", [](Net& net, Value x) { return net.sigmoid(x); }, false, true},
      {"softmax", [](Net& net, Value x) { return net.softmax(x); }, false, true},
      {"dropout", [](Net& net, Value x) { return net.dropout(x, 0.5F); }, false, false},
      {"add", [](Net& net, Value x) { return net.add(x, x); }, false, false},
      {"add relu", [](Net& net, Value x) { return net.add(x, x, {.relu = true}); }, false, true},
      {"mul", [](Net& net, Value x) { return net.mul(x, x); }, true, false},
      {"concat", [](Net& net, Value x) { return net.concat({x}); }, false, false},
      {"max_pool2d", [](Net& net, Value x) { return net.max_pool2d(x, {}); }, false, false},
      {"avg_pool2d", [](Net& net, Value x) { return net.avg_pool2d(x, {}); }, false, false},
      {"batch_norm", [](Net& net, Value x) { return net.batch_norm("bn", x); }, true, false},
      {"batch_norm relu", [](Net& net, Value x) { return net.batch_norm("bn", x, {.relu = true}); }, true,
       false},
      {"layer_norm", [](Net& net, Value x) { return net.layer_norm("ln", x); }, true, false},
      {"conv2d", [](Net& net, Value x) { return net.conv2d("c", x, 2, square(1)); }, true, false},
      {"linear", [](Net& net, Value x) { return net.linear("l", x, 4); }, true, false},
      {"matmul", [](Net& net, Value x) { return net.matmul(x, x); }, true, false},
  };
  for (const Kept& one : cases) {
    Net net("n");
    const Value x = net.conv2d("first", net.input("x", {2, 3, 4, 4}), 2, square(1));
    const Value y = one.build(net, x);
    net.backward({loss_of(net, net.dropout(y, 0.5F))});
    EXPECT_EQ(is_kept(net.graph(), x.tensor), one.input) << one.function;
    EXPECT_EQ(is_kept(net.graph(), y.tensor), one.output) << one.function;
  }
}

TEST(Differentiation, FitsEveryOperandOfMatmul) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Net net("n");
      const Value a = net.parameter("a", ta ? Shape{2, 5, 3} : Shape{2, 3, 5}, {});
      const Value b = net.parameter("b", tb ? Shape{2, 7, 5} : Shape{2, 5, 7}, {});
      net.backward({loss_of(net, net.matmul(a, b, {ta, tb, 2}))});
      const auto products = kernels_of(net.graph(), Operation::matmul);
      ASSERT_EQ(products.size(), 3U);
      for (const Kernel* kernel : products) {
        const auto& [transpose_a, transpose_b, scale] = std::get<MatmulAttributes>(kernel->attributes);
        const Shape &l = kernel->inputs[0].shape, &r = kernel->inputs[1].shape, &o = kernel->outputs[0].shape;
        EXPECT_EQ(l[transpose_a ? 1 : 2], r[transpose_b ? 2 : 1]);
        EXPECT_EQ(o, (Shape{2, l[transpose_a ? 2 : 1], r[transpose_b ? 1 : 2]}));
        EXPECT_EQ(scale, 2);
      }
    }
  }
}

TEST(Differentiation, ReadsWeightsOfTheSecondJudgementAfterTheFirstUpdate) {
  const Graph graph = adversarial();
  const TensorId weight = find_tensor(graph, "critic.fc.weight");
  const auto update = std::find_if(graph.kernels.begin(), graph.kernels.end(), [&](const Kernel& kernel) {
    return kernel.phase == Phase::update && kernel.outputs[0].tensor == weight;
  });
  EXPECT_TRUE(std::any_of(update, graph.kernels.end(), [&](const Kernel& kernel) {
    return operation_of(kernel) == Operation::linear && kernel.inputs[1].tensor == weight;
  }));
}

TEST(Training, AccumulatesTheGradientsOfParts) {
  const Graph graph = in_parts();
  std::set<TensorId> sums;
  for (const Kernel* sum : kernels_of(graph, Operation::add)) {
    EXPECT_EQ(sum->phase, Phase::backward);
    EXPECT_EQ(graph[sum->outputs[0].tensor].kind, TensorKind::gradient);
    EXPECT_FALSE(sum->in_place.empty());
    sums.insert(sum->outputs[0].tensor);
  }
  const auto updates = kernels_of(graph, Operation::sgd);
  EXPECT_EQ(sums.size(), 4U);
  ASSERT_EQ(updates.size(), 4U);
  for (const Kernel* update : updates) {
    EXPECT_TRUE(sums.contains(update->inputs[1].tensor)) << update->name;
  }
  // The second part reads the weights of the first.
  EXPECT_EQ(count(graph, Operation::linear), 4U);
  EXPECT_EQ(parameters(graph), 6 * 8 + 8 + 8 * 3 + 3);
}

TEST(Training, KeepsTheStateTheOptimizerNeeds) {
  const auto states = [](const Optimizer& optimizer) {
    Net net("n");
    net.train(loss_of(net, net.linear("fc", net.input("x", {4, 6}), 5)), optimizer);
    std::vector<std::string> names;
    for (const Tensor& tensor : net.graph().tensors) {
      if (tensor.kind == TensorKind::optimizer_state && tensor.persistent) names.push_back(tensor.name);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(states({.momentum = 0}), Names{});
  EXPECT_EQ(states({.momentum = 0.9F}), (Names{"momentum of fc.weight", "momentum of fc.bias"}));
  EXPECT_EQ(states({.kind = Optimizer::Kind::adam}),
            (Names{"first moment of fc.weight", "second moment of fc.weight", "first moment of fc.bias",
                   "second moment of fc.bias"}));
}

TEST(Training, UpdatesAWeightTwiceWithOneState) {
  Net net("n");
  const Gradients gradients =
      net.backward({loss_of(net, net.linear("fc", net.input("x", {4, 6}), 5))}, "fc.weight");
  net.update(gradients, {});
  {
    const auto scope = net.scope("again");
    net.update(gradients, {});
  }
  const auto updates = kernels_of(net.graph(), Operation::sgd);
  ASSERT_EQ(updates.size(), 2U);
  EXPECT_EQ(updates[0]->inputs[2].tensor, updates[1]->inputs[2].tensor);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Every check of Net: what it says, and that it names the layer.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "graph/nets.hpp"
#include "terrace/net.hpp"

namespace terrace {
namespace {

struct Case {
  const char* message;
  std::function<void(Net&)> build;
};

std::string complaint(const std::function<void(Net&)>& build, Net::Mode mode = Net::Mode::training) {
  Net net("n", mode);
  try {
    build(net);
  } catch (const GraphError& error) {
    return error.what();
  }
  return "accepted";
}

Value image(Net& net) { return net.input("x", {2, 3, 8, 8}); }
Value table(Net& net) { return net.input("x", {4, 6}); }

void expect_all(const std::vector<Case>& cases) {
  for (const Case& one : cases) EXPECT_EQ(complaint(one.build), std::string("n, ") + one.message);
}

TEST(NetErrors, NameTheLayerWithWeights) {
  expect_all({
      {"layer c: kernel, stride, dilation and groups must be above zero, padding not below",
       [](Net& net) { net.conv2d("c", image(net), 4, square(0)); }},
      {"layer c: conv2d wants [batch, channels, height, width], not [4, 6]",
       [](Net& net) { net.conv2d("c", table(net), 4, square(1)); }},
      {"layer c: conv_transpose2d wants [batch, channels, height, width], not [4, 6]",
       [](Net& net) { net.conv_transpose2d("c", table(net), 4, square(1)); }},
      {"layer c: 2 groups do not divide 3 input and 4 output channels",
       [](Net& net) { net.conv2d("c", image(net), 4, square(1, 0, 2)); }},
      {"layer c: a window of 9x9 leaves nothing of an image [2, 3, 8, 8]",
       [](Net& net) { net.conv2d("c", image(net), 4, square(9)); }},
      {"layer c: a window of 1x1 leaves nothing of an image [2, 3, 8, 8]",
       [](Net& net) { net.conv_transpose2d("c", image(net), 4, square(1, 4)); }},
      {"layer input: linear fc wants [rows, features], not [4]",
       [](Net& net) { net.linear("fc", net.input("x", {4}), 3); }},
      {"layer linear: a linear weight [3, 5] does not fit [4, 6]",
       [](Net& net) {
         net.linear_with(table(net), net.parameter("w", {3, 5}, {}));
       }},
      {"layer fc: fc.weight is [4, 3] here and was [3, 6] before",
       [](Net& net) { net.linear("fc", net.linear("fc", table(net), 3), 4); }},
      {"layer input: batch_norm b wants an image, not [4, 6]",
       [](Net& net) { net.batch_norm("b", table(net)); }},
      {"layer input: layer_norm l wants [rows, features], not [4]",
       [](Net& net) { net.layer_norm("l", net.input("x", {4})); }},
      {"layer e: the indices of an embedding are i32",
       [](Net& net) { net.embedding("e", table(net), 10, 4); }},
      {"layer e: an embedding needs rows and features",
       [](Net& net) { net.embedding("e", net.input("x", {4}, DataType::i32), 0, 4); }},
      {"layer l: lstm wants [time, batch, features], not [4, 6]",
       [](Net& net) { net.lstm("l", table(net), 4); }},
  });
}

TEST(NetErrors, NameTheLayerOfFunctions) {
  const auto in_layer = [](std::function<void(Net&, Value)> build) {
    return [build](Net& net) { build(net, net.linear("fc", table(net), 4)); };
  };
  expect_all({
      {"layer fc: matmul of [4, 4] and [4] wants two equal ranks of two or more",
       in_layer([](Net& net, Value x) { net.matmul(x, net.input("b", {4})); })},
      {"layer fc: matmul of [4, 4] and [3, 4] has unequal inner extents", in_layer([](Net& net, Value x) {
         net.matmul(x, net.input("b", {3, 4}));
       })},
      {"layer fc: matmul of [1, 4, 4] and [2, 4, 4] has unequal leading extents",
       in_layer([](Net& net, Value x) {
         net.matmul(net.reshape(x, {1, 4, 4}), net.input("b", {2, 4, 4}));
       })},
      {"layer fc: max_pool2d wants an image, not [4, 4]",
       in_layer([](Net& net, Value x) { net.max_pool2d(x, {}); })},
      {"layer fc: pooling wants an image, not [4, 4]",
       in_layer([](Net& net, Value x) { net.global_avg_pool2d(x); })},
      {"layer fc: a pooling window is above zero and padded by at most half of itself",
       in_layer([](Net& net, Value x) {
         net.avg_pool2d(net.reshape(x, {1, 1, 4, 4}), {.padding = {2, 2}});
       })},
      {"layer fc: a window of 5x5 does not fit an image [1, 1, 4, 4]", in_layer([](Net& net, Value x) {
         net.avg_pool2d(net.reshape(x, {1, 1, 4, 4}), {.kernel = {5, 5}});
       })},
      {"layer fc: softmax wants rows",
       in_layer([](Net& net, Value x) { net.softmax(net.reshape(x, {16}), {.causal = true}); })},
      {"layer fc: the slope of a leaky relu is above zero",
       in_layer([](Net& net, Value x) { net.leaky_relu(x, 0); })},
      {"layer fc: add wants equal shapes, not [4, 4] and [4]",
       in_layer([](Net& net, Value x) { net.add(x, net.input("b", {4})); })},
      {"layer fc: mul wants equal shapes, not [4, 4] and [4]",
       in_layer([](Net& net, Value x) { net.mul(x, net.input("b", {4})); })},
      {"layer fc: concat wants at least one part", in_layer([](Net& net, Value) { net.concat({}); })},
      {"layer fc: concat has no axis 2", in_layer([](Net& net, Value x) { net.concat({x}, 2); })},
      {"layer fc: concat wants parts of one rank", in_layer([](Net& net, Value x) {
         net.concat({x, net.input("b", {4})});
       })},
      {"layer fc: concat along axis 1 of [4, 4] and [3, 4]", in_layer([](Net& net, Value x) {
         net.concat({x, net.input("b", {3, 4})});
       })},
      {"layer fc: cannot split [4, 4] into 1 parts of 2 heads", in_layer([](Net& net, Value x) {
         net.split_heads(x, {1, 2});
       })},
      {"layer fc: cannot merge 2 heads of [4, 4]",
       in_layer([](Net& net, Value x) { net.merge_heads(x, 2); })},
      {"layer fc: cannot drop 1 of the elements", in_layer([](Net& net, Value x) { net.dropout(x, 1); })},
      {"layer fc: cross_entropy wants [rows, classes] and i32 [rows], not [4, 4] and [4]",
       in_layer([](Net& net, Value x) { net.cross_entropy(x, net.input("label", {4})); })},
      {"layer fc: a probability of 2 is no target",
       in_layer([](Net& net, Value x) { net.binary_cross_entropy(x, 2); })},
      {"layer fc: cannot see 16 elements of shape [4, 4] as [5]",
       in_layer([](Net& net, Value x) { net.reshape(x, {5}); })},
      {"layer fc: cannot see 16 elements of shape [4, 4] as [4294967296, 4294967296]",
       in_layer([](Net& net, Value x) {
         net.reshape(x, {4294967296, 4294967296});
       })},
      {"layer fc: cannot flatten a scalar", in_layer([](Net& net, Value) { net.flatten({}); })},
      {"layer fc: an operand was never computed", in_layer([](Net& net, Value) { net.relu({}); })},
  });
}

TEST(NetErrors, NameWhatWasGivenWrongly) {
  expect_all({
      {"layer input: there are two inputs named x",
       [](Net& net) {
         net.input("x", {1});
         net.input("x", {1});
       }},
      {"layer input: positions p count modulo 0: give a period above zero",
       [](Net& net) { net.positions("p", {4}, 0); }},
      {"layer input: x of shape [4294967296, 4294967296] has more bytes than 63 bits count",
       [](Net& net) {
         net.input("x", {4294967296, 4294967296});
       }},
  });
}

TEST(NetErrors, RefuseGradientsThatCannotBe) {
  const auto logits = [](Net& net) { return net.linear("fc", table(net), 4); };
  const auto loss = [=](Net& net) { return net.binary_cross_entropy(logits(net), 1); };
  expect_all({
      {"layer fc: add is no loss: give backward the losses one by one",
       [=](Net& net) {
         const Value one = loss(net);
         net.backward({net.add(one, one)});
       }},
      {"layer fc: a loss is the end: nothing computed from fc:binary_cross_entropy can be differentiated",
       [=](Net& net) { net.backward({net.binary_cross_entropy(net.relu(loss(net)), 1)}); }},
      {"layer fc: only gradients of the same weights can be added",
       [=](Net& net) {
         const Gradients both = net.backward({loss(net)});
         net.accumulate(both, {both[0]});
       }},
      {"layer fc: only gradients of the same weights can be added",
       [=](Net& net) {
         const Gradients both = net.backward({loss(net)});
         net.accumulate({both[0]}, {both[1]});
       }},
  });
  EXPECT_EQ(complaint([=](Net& net) { net.backward({loss(net)}); }, Net::Mode::inference),
            "n, layer fc: a net for inference has no gradients");
}

TEST(NetErrors, RefuseOneNameForTwoTensors) {
  EXPECT_EQ(complaint([](Net& net) {
              net.result(net.linear("fc", net.input("fc.weight", {4, 6}), 3));
              std::move(net).finish();
            }),
            "n: fc.weight is the name of two tensors");
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Small nets of every kind the zoo has, for tests that want real graphs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "terrace/net.hpp"

namespace terrace {

/// A square window.
inline Net::Conv square(std::int64_t extent, std::int64_t padding = 0, std::int64_t groups = 1) {
  Net::Conv options;
  options.kernel = {extent, extent};
  options.padding = {padding, padding};
  options.groups = groups;
  return options;
}

inline Graph mlp() {
  Net net("mlp");
  Value x = net.input("image", {8, 12});
  x = net.relu(net.linear("fc1", x, 16));
  x = net.dropout(net.tanh(net.linear("fc2", x, 16)), 0.5F);
  const Value loss = net.cross_entropy(net.linear("fc3", x, 4), net.input("label", {8}, DataType::i32));
  net.train(loss, {});
  return std::move(net).finish();
}

inline Graph residual(Net::Mode mode = Net::Mode::training) {
  Net net("residual", mode);
  Value x = net.input("image", {2, 3, 16, 16});
  Net::Conv unbiased = square(3, 1);
  unbiased.bias = false;
  x = net.batch_norm("bn0", net.conv2d("conv0", x, 8, unbiased), {.relu = true});
  x = net.max_pool2d(x, {});
  for (const char* name : {"block1", "block2"}) {
    const auto scope = net.scope(name);
    Value y = net.batch_norm("bn1", net.conv2d("conv1", x, 8, square(3, 1)));
    y = net.leaky_relu(y, 0.1F);
    y = net.conv2d("conv2", y, 8, square(3, 1, 2));
    x = net.add(x, y, {.relu = true});
  }
  x = net.concat({x, net.avg_pool2d(x, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}})});
  x = net.linear("head", net.flatten(net.global_avg_pool2d(x)), 5);
  if (mode == Net::Mode::inference) {
    net.result(x);
  } else {
    net.train(net.cross_entropy(x, net.input("label", {2}, DataType::i32)), {.momentum = 0});
  }
  return std::move(net).finish();
}

inline Graph transformer() {
  Net net("transformer");
  const Value tokens = net.input("tokens", {2, 6}, DataType::i32);
  Value x = net.embedding("wte", tokens, 20, 8);
  x = net.add(x, net.embedding("wpe", net.positions("positions", {2, 6}, 6), 6, 8));
  {
    const auto scope = net.scope("block");
    const auto parts = net.split_heads(net.linear("qkv", net.layer_norm("ln1", x), 24), {3, 2});
    Value scores = net.matmul(parts[0], parts[1], {.transpose_b = true, .scale = 0.5F});
    scores = net.softmax(scores, {.causal = true});
    x = net.add(x, net.linear("out", net.merge_heads(net.matmul(scores, parts[2]), 2), 8));
    x = net.add(x, net.linear("down", net.gelu(net.linear("up", net.layer_norm("ln2", x), 16)), 8));
  }
  const Value table = net.parameter("wte.weight", {20, 8}, {});
  const Value logits = net.reshape(net.linear_with(x, table), {12, 20});
  net.train(net.cross_entropy(logits, net.input("next", {12}, DataType::i32)),
            {.kind = Optimizer::Kind::adam, .weight_decay = 0.1F, .decoupled_decay = true});
  return std::move(net).finish();
}

inline Graph recurrent() {
  Net net("recurrent");
  Value x = net.embedding("words", net.input("tokens", {5, 2}, DataType::i32), 30, 6);
  x = net.lstm("lstm2", net.lstm("lstm1", x, 7), 7);
  const Value gate = net.sigmoid(net.linear("gate", x, 7));
  const Value logits = net.reshape(net.linear("out", net.mul(x, gate), 30), {10, 30});
  net.train(net.cross_entropy(logits, net.input("next", {10}, DataType::i32)), {});
  return std::move(net).finish();
}

/// Two networks against each other: the critic is updated, then read again to judge the maker.
inline Graph adversarial() {
  Net net("adversarial");
  const Value noise = net.input("noise", {2, 4, 1, 1}), real = net.input("real", {2, 3, 4, 4});
  const Value made = net.tanh(net.conv_transpose2d("maker", noise, 3, square(4)));
  const auto judge = [&](Value image) {
    const Value x = net.conv2d("critic.conv", image, 4, square(4));
    return net.linear("critic.fc", net.flatten(net.leaky_relu(x, 0.2F)), 1);
  };
  const std::vector<Value> losses{net.binary_cross_entropy(judge(real), 1),
                                  net.binary_cross_entropy(judge(made), 0)};
  net.update(net.backward(losses, "critic"), {.kind = Optimizer::Kind::adam});
  const Value fooled = net.binary_cross_entropy(judge(made), 1);
  net.update(net.backward({fooled}, "maker"), {.kind = Optimizer::Kind::adam});
  return std::move(net).finish();
}

/// One batch in two parts.
inline Graph in_parts() {
  Net net("in_parts");
  const auto part = [&](const std::string& name) {
    Value x = net.input("image" + name, {4, 6});
    x = net.relu(net.linear("fc1", x, 8));
    return net.backward(
        {net.cross_entropy(net.linear("fc2", x, 3), net.input("label" + name, {4}, DataType::i32), 0.5F)});
  };
  const Gradients first = part("1");
  net.update(net.accumulate(first, part("2")), {});
  return std::move(net).finish();
}

inline std::vector<Graph> all_nets() {
  return {mlp(),         residual(), residual(Net::Mode::inference), transformer(), recurrent(),
          adversarial(), in_parts()};
}

}  // namespace terrace

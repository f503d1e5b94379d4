// Nets whose weights are large beside everything else, and how two trainers of one net are compared.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "exec/nets.hpp"
#include "graph/parts.hpp"
#include "nn/split.hpp"

namespace terrace::test {

inline Optimizer adam() { return {.kind = Optimizer::Kind::adam, .weight_decay = 0.01F}; }

/// Linear layers as in vgg's classifier: the first behind the stem is nearly all of it.
inline Graph classifier(std::int64_t inputs, std::int64_t hidden, const Optimizer& optimizer = {}) {
  Net net("classifier");
  const Value stem = net.relu(net.linear("stem", net.input("x", {3, 8}), inputs));
  Value x = net.relu(net.linear("first", stem, hidden));
  x = net.linear("last", net.dropout(net.relu(net.linear("middle", x, 29)), 0.3F), 10);
  net.train(net.cross_entropy(x, net.input("label", {3}, DataType::i32)), optimizer);
  return std::move(net).finish();
}

/// A table that words are looked up in and whose rows the outcome is compared with, as in gpt2.
inline Graph tied(std::int64_t words, std::int64_t features, const Optimizer& optimizer = adam()) {
  Net net("tied");
  const Initial initial{Initial::Kind::normal, 0, 0.1F};
  Value x = net.embedding("words", net.input("tokens", {7}, DataType::i32), words, features, initial);
  x = net.gelu(net.linear("inner", x, features));
  const Value logits = net.linear_with(x, net.parameter("words.weight", {words, features}, initial));
  net.train(net.cross_entropy(logits, net.input("target", {7}, DataType::i32)), optimizer);
  return std::move(net).finish();
}

/// A table alone is large: everything else is the same kernels, split or not.
inline Graph lookup(std::int64_t words, std::int64_t features, const Optimizer& optimizer) {
  Net net("lookup");
  const Value tokens = net.input("tokens", {40}, DataType::i32);
  const Value x = net.linear("last", net.embedding("words", tokens, words, features), 10);
  net.train(net.cross_entropy(x, net.input("target", {40}, DataType::i32)), optimizer);
  return std::move(net).finish();
}

/// Normalisations of two branches that are added, so that the gradient of the sum is read by both.
inline Graph residual(std::int64_t channels, std::int64_t side, std::int64_t window = 1) {
  Net net("residual");
  const Value image = net.input("image", {2, 3, side, side});
  const Net::Conv conv{.kernel = {3, 3}, .padding = {1, 1}, .bias = false, .initial = {}};
  Value x = net.batch_norm("bn1", net.conv2d("conv1", image, channels, conv), {.relu = true});
  const Net::Conv inner{.kernel = {window, window}, .bias = false, .initial = {}};
  const Value a = net.batch_norm("bn2", net.conv2d("conv2", x, channels, inner));
  const Value b = net.batch_norm("bn3", net.conv2d("conv3", x, channels, inner));
  x = net.global_avg_pool2d(net.add(a, b, {.relu = true}));
  x = net.linear("last", net.flatten(x), 10);
  net.train(net.cross_entropy(x, net.input("label", {2}, DataType::i32)), {});
  return std::move(net).finish();
}

/// Activations are large, filters are not, as where vgg begins.
inline Graph pictures(std::int64_t batch, std::int64_t channels, std::int64_t side) {
  Net net("pictures");
  const Net::Conv conv{.kernel = {3, 3}, .padding = {1, 1}, .initial = {}};
  Value x = net.input("image", {batch, 3, side, side});
  x = net.relu(net.conv2d("conv1", x, channels, conv));
  x = net.max_pool2d(net.relu(net.conv2d("conv2", x, channels, conv)), {.kernel = {2, 2}});
  x = net.avg_pool2d(net.tanh(net.conv2d("conv3", x, 8, conv)), {.kernel = {2, 2}});
  x = net.linear("last", net.flatten(x), 10);
  net.train(net.cross_entropy(x, net.input("label", {batch}, DataType::i32)), {});
  return std::move(net).finish();
}

inline Graph recurrent(std::int64_t batch, std::int64_t hidden) {
  Net net("recurrent");
  const Value tokens = net.input("tokens", {9, batch}, DataType::i32);
  const Value x = net.lstm("cell", net.embedding("words", tokens, 10, 6), hidden);
  const Value logits = net.linear("last", net.reshape(x, {9 * batch, hidden}), 10);
  net.train(net.cross_entropy(logits, net.input("target", {9 * batch}, DataType::i32)), {});
  return std::move(net).finish();
}

inline Bytes largest_kernel(const Graph& graph) {
  Bytes most{};
  for (const Kernel& kernel : graph.kernels) {
    std::vector<TensorId> seen;
    Bytes sum{};
    for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
      for (const Operand& operand : *operands) {
        if (std::find(seen.begin(), seen.end(), operand.tensor) != seen.end()) continue;
        seen.push_back(operand.tensor);
        sum += graph[operand.tensor].bytes;
      }
    }
    most = std::max(most, sum);
  }
  return most;
}

/// In parts of at most half of `percent` of what the largest kernel takes.
inline Graph split(const Graph& graph, std::uint64_t percent) {
  Split split = split_to_fit(graph, largest_kernel(graph) * percent / 100);
  EXPECT_EQ(split.obstacle, "");
  EXPECT_GT(split.kernels, 0U);
  const auto valid = validate(split.graph);
  EXPECT_TRUE(valid.ok()) << valid.error().message;
  return std::move(split.graph);
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Every persistent tensor of `whole`, read under its own name from both.
inline void expect_same_bits(const Trainer& whole, const Trainer& split) {
  for (const Tensor& tensor : whole.program().graph.tensors) {
    if (!tensor.persistent || tensor.type != DataType::f32) continue;
    EXPECT_TRUE(same_bits(whole.read(tensor.name), split.read(tensor.name))) << tensor.name;
  }
}

inline void expect_near(const Trainer& whole, const Trainer& split, float tolerance) {
  for (const Tensor& tensor : whole.program().graph.tensors) {
    if (!tensor.persistent || tensor.type != DataType::f32) continue;
    const auto want = whole.read(tensor.name), got = split.read(tensor.name);
    ASSERT_EQ(want.size(), got.size()) << tensor.name;
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(want[i], got[i], tolerance * (1 + std::abs(want[i]))) << tensor.name << " at " << i;
  }
}

}  // namespace terrace::test

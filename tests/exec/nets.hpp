// SPDX-License-Identifier: Apache-2.0
// Small training graphs of every kind, and data for them.
#pragma once

#include <vector>

#include "base/random.hpp"
#include "terrace/networks.hpp"
#include "terrace/trainer.hpp"

namespace terrace {

inline Graph small_resnet(std::int64_t batch = 4) {
  Net net("small resnet");
  const Value image = net.input("image", {batch, 3, 32, 32});
  const networks::ResNetOptions options{.layers = {1, 1}, .width = 8, .classes = 10};
  const Value label = net.input("label", {batch}, DataType::i32);
  net.train(net.cross_entropy(networks::resnet(net, image, options), label), {.weight_decay = 1e-4F});
  return std::move(net).finish();
}

inline Graph small_mobilenet() {
  Net net("small mobilenet");
  const Value image = net.input("image", {2, 3, 32, 32});
  const Value label = net.input("label", {2}, DataType::i32);
  const Value logits = networks::mobilenet(net, image, {.width = 8, .classes = 10});
  net.train(net.cross_entropy(logits, label), {.kind = Optimizer::Kind::adam});
  return std::move(net).finish();
}

inline Graph small_gpt(std::int64_t sequence = 12) {
  Net net("small gpt");
  const Value tokens = net.input("tokens", {2, sequence}, DataType::i32);
  const Value target = net.input("target", {2, sequence}, DataType::i32);
  const networks::GptOptions options{
      .vocabulary = 10, .positions = 12, .hidden = 24, .layers = 2, .heads = 3, .dropout = 0.2F};
  net.train(net.cross_entropy(networks::gpt(net, tokens, options), target), {.kind = Optimizer::Kind::adam});
  return std::move(net).finish();
}

inline Graph small_lstm(std::int64_t sequence = 7) {
  Net net("small lstm");
  const Value tokens = net.input("tokens", {sequence, 3}, DataType::i32);
  const Value target = net.input("target", {sequence, 3}, DataType::i32);
  const networks::LstmOptions options{.vocabulary = 10, .hidden = 17, .layers = 2, .dropout = 0.5F};
  net.train(net.cross_entropy(networks::lstm(net, tokens, options), target), {});
  return std::move(net).finish();
}

inline Graph small_bert(std::int64_t sequence = 12) {
  Net net("small bert");
  const Value tokens = net.input("tokens", {2, sequence}, DataType::i32);
  const Value target = net.input("target", {2, sequence}, DataType::i32);
  const networks::BertOptions options{
      .vocabulary = 10, .positions = 12, .hidden = 24, .layers = 2, .heads = 3, .dropout = 0.1F};
  net.train(net.cross_entropy(networks::bert(net, tokens, options), target), {.kind = Optimizer::Kind::adam});
  return std::move(net).finish();
}

/// Paths through one network: all of it with a second head that helps to train, the same without that head,
/// and past the block in the middle.
enum class Route { helped, plain, short_cut };

inline Graph routed(Route route) {
  Net net("routed");
  const Value label = net.input("label", {6}, DataType::i32);
  Value x = net.relu(net.linear("stem", net.input("x", {6, 20}), 48));
  if (route != Route::short_cut)
    x = net.add(x, net.linear("block.out", net.gelu(net.linear("block.in", x, 96)), 48));
  std::vector<Value> losses{net.cross_entropy(net.linear("head", x, 10), label)};
  if (route == Route::helped) losses.push_back(net.cross_entropy(net.linear("helper", x, 10), label, 0.3F));
  net.update(net.backward(losses), {.kind = Optimizer::Kind::adam});
  return std::move(net).finish();
}

/// Filters stored the other way round, and in groups.
inline Graph small_generator() {
  Net net("small generator");
  Value x = net.input("noise", {2, 8, 4, 4});
  x = net.conv_transpose2d("up1", x, 32,
                           {.kernel = {4, 4}, .stride = {2, 2}, .padding = {1, 1}, .initial = {}});
  x = net.conv_transpose2d("up2", net.tanh(x), 32, {.kernel = {4, 4}, .stride = {2, 2}, .initial = {}});
  x = net.conv_transpose2d("up3", net.tanh(x), 32, {.kernel = {3, 3}, .groups = 2, .initial = {}});
  net.train(net.binary_cross_entropy(x, 1), {});
  return std::move(net).finish();
}

inline std::vector<Graph> small_graphs() {
  return {small_resnet(), small_mobilenet(), small_gpt(), small_lstm(), small_generator()};
}

/// Random inputs, the same for the same seed; integers are below ten.
inline void fill_inputs(Trainer& trainer, std::uint64_t seed) {
  SplitMix random(seed);
  for (const Tensor& tensor : trainer.program().graph.tensors) {
    if (tensor.kind != TensorKind::input || tensor.persistent) continue;
    if (tensor.type == DataType::f32) {
      for (float& value : trainer.input(tensor.name))
        value = static_cast<float>(random.below(2001)) / 1000 - 1;
    } else {
      for (std::int32_t& value : trainer.integer_input(tensor.name))
        value = static_cast<std::int32_t>(random.below(10));
    }
  }
}

inline Trainer start(const Graph& graph, std::uint64_t seed = 1) {
  return Trainer::start(compile(graph).value(), {.seed = seed, .learning_rate = 0.01F}).value();
}

/// One step on the inputs of that seed; returns the loss.
inline float step(Trainer& trainer, std::uint64_t seed) {
  fill_inputs(trainer, seed);
  trainer.step();
  return trainer.result(0)[0];
}

/// All that outlives a step, in the order of the graph, constants of integers aside.
inline std::vector<std::vector<float>> state_of(const Trainer& trainer) {
  std::vector<std::vector<float>> state;
  for (const Tensor& tensor : trainer.program().graph.tensors) {
    if (tensor.persistent && tensor.type == DataType::f32) state.push_back(trainer.read(tensor.name));
  }
  return state;
}

}  // namespace terrace

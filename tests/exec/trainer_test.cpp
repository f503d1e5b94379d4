// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "exec/nets.hpp"
#include "plan/packing.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/models.hpp"
#include "tiers/temporary_folder.hpp"

namespace terrace {
namespace {

using State = std::vector<std::vector<float>>;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool same_bits(const State& a, const State& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return same_bits(x, y); });
}

std::vector<float> train(Trainer& trainer, int steps) {
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) losses.push_back(step(trainer, static_cast<std::uint64_t>(i)));
  return losses;
}

TEST(Trainer, GivesTheSameBitsInEveryRun) {
  for (const Graph& graph : small_graphs()) {
    SCOPED_TRACE(graph.name);
    Trainer first = start(graph), second = start(graph);
    EXPECT_TRUE(same_bits(train(first, 3), train(second, 3)));
    EXPECT_TRUE(same_bits(state_of(first), state_of(second)));
  }
}

TEST(Trainer, GivesOtherBitsForOtherSeeds) {
  for (const Graph& graph : small_graphs()) {
    SCOPED_TRACE(graph.name);
    Trainer first = start(graph, 1), second = start(graph, 2);
    EXPECT_FALSE(same_bits(train(first, 1), train(second, 1)));
  }
}

/// The weights are the same: only what is dropped differs.
TEST(Trainer, DropsOtherElementsInEveryStep) {
  Trainer trainer = start(small_gpt());
  trainer.set_learning_rate(0);
  EXPECT_NE(step(trainer, 5), step(trainer, 5));
}

TEST(Trainer, LearnsWhatItIsShown) {
  for (const Graph& graph : small_graphs()) {
    SCOPED_TRACE(graph.name);
    Trainer trainer = start(graph);
    const float before = step(trainer, 5);
    float after = before;
    for (int i = 0; i < 20; ++i) after = step(trainer, 5);
    EXPECT_LT(after, before);
  }
}

TEST(Trainer, StartsWithTheSameWeightsInAnyLayout) {
  // Whether a convolution or a linear layer reads a weight changes where its elements lie, not what they are.
  const auto values_of = [](std::int64_t channels) {
    Net net("layouts");
    const Value x = net.input("x", {2, channels, 4, 4});
    net.train(net.binary_cross_entropy(net.conv2d("c", x, 16, {.kernel = {1, 1}, .initial = {}}), 1), {});
    return start(std::move(net).finish()).read("c.weight");
  };
  const auto wide = values_of(32), narrow = values_of(3);
  const float scale = std::sqrt(3.0F / 32.0F);
  for (std::size_t i = 0; i < narrow.size(); ++i) EXPECT_NEAR(wide[i], narrow[i] * scale, 1e-6);
}

TEST(Trainer, ReadsBackWhatWasWritten) {
  for (const Graph& graph : small_graphs()) {
    SCOPED_TRACE(graph.name);
    Trainer trainer = start(graph);
    for (const Tensor& tensor : trainer.program().graph.tensors) {
      if (!tensor.persistent || tensor.type != DataType::f32) continue;
      std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 0.5F;
      trainer.write(tensor.name, values);
      EXPECT_TRUE(same_bits(trainer.read(tensor.name), values)) << tensor.name << " " << tensor.layout;
    }
  }
}

TEST(Trainer, ContinuesFromSavedWeights) {
  const TemporaryFolder folder;
  for (const Graph& graph : {small_resnet(), small_generator()}) {
    SCOPED_TRACE(graph.name);
    Trainer first = start(graph, 1), second = start(graph, 2);
    train(first, 3);
    first.save_weights(folder / "weights").value();
    second.load_weights(folder / "weights").value();
    EXPECT_EQ(step(first, 9), step(second, 9));
  }
}

TEST(Trainer, RefusesAFileOfAnotherNetworkAndChangesNothing) {
  const TemporaryFolder folder;
  Trainer trainer = start(small_resnet());
  start(small_gpt()).save_weights(folder / "gpt").value();
  Net wider("small resnet");
  const Value image = wider.input("image", {4, 3, 32, 32});
  wider.result(networks::resnet(wider, image, {.layers = {1, 1}, .width = 8, .classes = 11}));
  start(std::move(wider).finish()).save_weights(folder / "wider").value();
  std::ofstream(folder / "garbage") << "no tensors";
  const State before = state_of(trainer);
  for (const auto& [file, reason] :
       {std::pair{"gpt", "holds no conv1.weight"}, std::pair{"wider", "fc.weight"},
        std::pair{"garbage", "garbage"}, std::pair{"missing", "missing"}}) {
    const auto loaded = trainer.load_weights(folder / file);
    ASSERT_FALSE(loaded) << file;
    EXPECT_NE(loaded.error().message.find(reason), std::string::npos) << loaded.error().message;
  }
  EXPECT_TRUE(same_bits(state_of(trainer), before));
}

std::uint64_t mapped_pages() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

TEST(Trainer, RefusesABatchThatDoesNotFitBeforeTakingMemory) {
  const auto program = compile(build_model("convnet", {.batch = 1 << 20, .sequence = {}}).value()).value();
  const std::uint64_t before = mapped_pages();
  const auto started = Trainer::start(program, {});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::too_large);
  EXPECT_NE(started.error().message.find(readable(program.arena)), std::string::npos)
      << started.error().message;
  EXPECT_LT(mapped_pages() - before, 1000U);
}

TEST(Trainer, RefusesWhatIsNoInputOfTheGraph) {
  Trainer trainer = start(small_resnet());
  EXPECT_THROW(trainer.input("nothing"), std::logic_error);
  EXPECT_THROW(trainer.input("label"), std::logic_error);
  EXPECT_THROW(trainer.integer_input("image"), std::logic_error);
  EXPECT_THROW(trainer.read("image"), std::logic_error);
  EXPECT_THROW(trainer.write("fc.bias", std::vector<float>(3)), std::logic_error);
  EXPECT_THROW(trainer.result(1), std::logic_error);
}

TEST(Compile, RefusesForeignOperations) {
  Graph graph;
  graph.name = "imported";
  graph.layers = {"layer"};
  graph.tensors = {
      {.name = "x",
       .shape = {4},
       .kind = TensorKind::input,
       .bytes = Bytes{16},
       .layout = {},
       .initial = {},
       .part_of = {}},
      {.name = "y", .shape = {4}, .bytes = Bytes{16}, .layout = {}, .initial = {}, .part_of = {}}};
  Kernel kernel;
  kernel.name = "mystery";
  kernel.inputs = {{{0}, {4}, {}, {}}};
  kernel.outputs = {{{1}, {4}, {}, {}}};
  graph.kernels = {kernel};
  const auto program = compile(graph);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::unsupported);
  EXPECT_NE(program.error().message.find("mystery"), std::string::npos);
}

TEST(Compile, PacksWhatLivesTogetherSideBySide) {
  for (const Graph& graph : small_graphs()) {
    SCOPED_TRACE(graph.name);
    const Program program = compile(graph).value();
    const Lifetimes lifetimes(program.graph);
    std::vector<PackingItem> items;
    for (std::uint32_t i = 0; i < program.graph.tensors.size(); ++i)
      items.push_back({program.graph.tensors[i].bytes, lifetimes[{i}].first, lifetimes[{i}].last});
    const Bytes line{64};
    validate(items, {program.offsets, program.arena, line}).value();
    EXPECT_EQ(program.peak, lifetimes.peak_bytes());
    EXPECT_LE(live_bytes_bound(items, line), program.arena);
    EXPECT_LE(program.arena.count, live_bytes_bound(items, line).count * 11 / 10);
  }
}

/// By hand: y = weight * (x - running_mean) / sqrt(running_var + epsilon) + bias.
TEST(Inference, UsesTheStatisticsThatTrainingLeft) {
  const auto build = [](Net::Mode mode) {
    Net net("norm", mode);
    const Value y = net.batch_norm("norm", net.input("image", {4, 17, 5, 5}), {.momentum = 0.5F});
    mode == Net::Mode::training ? net.train(net.binary_cross_entropy(y, 1), {}) : net.result(y);
    return std::move(net).finish();
  };
  const TemporaryFolder folder;
  Trainer training = start(build(Net::Mode::training)), inference = start(build(Net::Mode::inference));
  train(training, 3);
  training.save_weights(folder / "weights").value();
  inference.load_weights(folder / "weights").value();
  fill_inputs(inference, 9);
  const std::span<float> image = inference.input("image");
  const std::vector<float> x(image.begin(), image.end());
  inference.step();
  const std::vector<float> y = inference.result(0), weight = training.read("norm.weight"),
                           bias = training.read("norm.bias"), mean = training.read("norm.running_mean"),
                           variance = training.read("norm.running_var");
  ASSERT_NE(mean[0], 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i / 25 % 17;
    EXPECT_NEAR(y[i], weight[c] * (x[i] - mean[c]) / std::sqrt(variance[c] + 1e-5F) + bias[c], 1e-5) << i;
  }
}

}  // namespace
}  // namespace terrace

// What a training step of any model is made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "graph/passes.hpp"
#include "nn/models/training.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/models.hpp"

namespace terrace {
namespace {

Graph built(std::string_view name, const ModelOptions& options) { return build_model(name, options).value(); }

bool is_update(const Kernel& kernel) { return kernel.phase == Phase::update; }

/// Positions of the kernels that have `tensor` among these operands.
std::vector<std::size_t> uses(const Graph& graph, TensorId tensor, std::vector<Operand> Kernel::*operands) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < graph.kernels.size(); ++i) {
    const auto& list = graph.kernels[i].*operands;
    if (std::any_of(list.begin(), list.end(), [&](const Operand& o) { return o.tensor == tensor; }))
      positions.push_back(i);
  }
  return positions;
}

std::vector<std::string> names(const Graph& graph, TensorKind kind) {
  std::vector<std::string> found;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == kind) found.push_back(tensor.name);
  }
  return found;
}

std::vector<std::string> result_names(const Graph& graph) {
  std::vector<std::string> found;
  for (const TensorId id : graph.results) found.push_back(graph[id].name);
  return found;
}

TEST(TrainingStep, IsAValidGraphBeforeAndAfterSharing) {
  for (const ModelInfo& info : models()) {
    const Graph graph = built(info.name, {.batch = 2});
    EXPECT_EQ(graph.name, info.name);
    EXPECT_TRUE(validate(graph).ok()) << info.name;
    EXPECT_TRUE(validate(share_in_place(graph)).ok()) << info.name;
  }
}

TEST(TrainingStep, UpdatesEveryWeightOnceFromItsGradient) {
  for (const ModelInfo& info : models()) {
    const Graph graph = built(info.name, {.batch = 2});
    std::map<std::uint32_t, int> updates;
    for (const Kernel& kernel : graph.kernels) {
      if (!is_update(kernel)) continue;
      ++updates[kernel.outputs[0].tensor.index];
      EXPECT_EQ(graph[kernel.inputs[1].tensor].kind, TensorKind::gradient) << kernel.name;
    }
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
      if (graph.tensors[i].kind != TensorKind::weight) continue;
      EXPECT_EQ(updates[i], 1) << info.name << " " << graph.tensors[i].name;
    }
  }
}

TEST(TrainingStep, NamesItsInputsAndResults) {
  const std::vector<std::string> images{"image", "label"};
  const Graph resnet = built("resnet32", {.batch = 2});
  EXPECT_EQ(names(resnet, TensorKind::input), images);
  EXPECT_EQ(result_names(resnet), std::vector<std::string>{"loss"});
  const std::vector<std::string> tokens{"tokens", "target"};
  EXPECT_EQ(names(built("lstm", {}), TensorKind::input), tokens);
  const std::vector<std::string> with_places{"tokens", "target", "tokens.places"};
  EXPECT_EQ(names(built("gpt2", {.batch = 1}), TensorKind::input), with_places);
}

TEST(TrainingStep, TakesTheSequenceAsItIsAskedFor) {
  const Graph gpt = built("gpt2", {.batch = 3, .sequence = 64});
  EXPECT_EQ(gpt[find_tensor(gpt, "tokens")].shape, (Shape{3, 64}));
  EXPECT_EQ(gpt[find_tensor(gpt, "wpe.weight")].shape, (Shape{1024, 768}));
  const Graph lstm = built("lstm", {.batch = 3, .sequence = 7});
  EXPECT_EQ(lstm[find_tensor(lstm, "tokens")].shape, (Shape{7, 3}));
}

std::int64_t states_per_weight(const Graph& graph) {
  return static_cast<std::int64_t>(names(graph, TensorKind::optimizer_state).size() /
                                   names(graph, TensorKind::weight).size());
}

TEST(TrainingStep, UsesTheOptimizerItIsGivenOrThePublishedOne) {
  EXPECT_EQ(states_per_weight(built("resnet32", {.batch = 2})), 1);
  EXPECT_EQ(states_per_weight(built("resnet32", {.batch = 2, .optimizer = Optimizer{.momentum = 0}})), 0);
  const Optimizer adam{.kind = Optimizer::Kind::adam};
  EXPECT_EQ(states_per_weight(built("resnet32", {.batch = 2, .optimizer = adam})), 2);
  EXPECT_EQ(states_per_weight(built("gpt2", {.batch = 1})), 2);
  EXPECT_EQ(states_per_weight(built("lstm", {})), 0);
  EXPECT_EQ(states_per_weight(built("dcgan", {})), 2);
}

TEST(MicroBatches, SplitTheBatchIntoNamedParts) {
  const Graph graph = built("convnet", {.batch = 12, .micro_batches = 3});
  const std::vector<std::string> inputs{"image.0", "label.0", "image.1", "label.1", "image.2", "label.2"};
  const std::vector<std::string> losses{"loss.0", "loss.1", "loss.2"};
  EXPECT_EQ(names(graph, TensorKind::input), inputs);
  EXPECT_EQ(result_names(graph), losses);
  EXPECT_EQ(graph[find_tensor(graph, "image.2")].shape, (Shape{4, 1, 28, 28}));
  EXPECT_EQ(parameters(graph), parameters(built("convnet", {.batch = 12})));
}

TEST(MicroBatches, WeighEveryPartEquallyAndUpdateOnce) {
  const Graph graph = built("convnet", {.batch = 8, .micro_batches = 4});
  int losses = 0;
  for (const Kernel& kernel : graph.kernels) {
    if (operation_of(kernel) != Operation::cross_entropy) continue;
    ++losses;
    EXPECT_EQ(attributes_as<LossAttributes>(kernel).weight, 0.25F);
  }
  EXPECT_EQ(losses, 4);
  EXPECT_EQ(std::count_if(graph.kernels.begin(), graph.kernels.end(), is_update),
            static_cast<std::ptrdiff_t>(names(graph, TensorKind::weight).size()));
}

TEST(MicroBatches, WorkOnOnePartAfterTheOther) {
  const Graph graph = built("mlp", {.batch = 4, .micro_batches = 2});
  const auto first = uses(graph, find_tensor(graph, "image.0"), &Kernel::inputs);
  const auto second = uses(graph, find_tensor(graph, "image.1"), &Kernel::inputs);
  EXPECT_LT(first.back(), second.front());
}

TEST(MicroBatches, NeedLessMemory) {
  const auto peak = [](std::int64_t parts) {
    return Lifetimes(share_in_place(built("resnet32", {.batch = 64, .micro_batches = parts}))).peak_bytes();
  };
  EXPECT_LT(peak(8), peak(1) / 6);
}

TEST(MicroBatches, WorkForEveryModel) {
  for (const ModelInfo& info : models()) {
    const Graph graph = built(info.name, {.batch = 2, .micro_batches = 2});
    EXPECT_TRUE(validate(graph).ok()) << info.name;
    EXPECT_EQ(parameters(graph), parameters(built(info.name, {.batch = 2}))) << info.name;
  }
}

TEST(Dcgan, HasThreeLosses) {
  const std::vector<std::string> losses{"d_real", "d_fake", "g"};
  const Graph graph = built("dcgan", {});
  EXPECT_EQ(result_names(graph), losses);
  const std::vector<std::string> inputs{"image", "noise"};
  EXPECT_EQ(names(graph, TensorKind::input), inputs);
  std::vector<float> targets;
  for (const Kernel& kernel : graph.kernels) {
    if (operation_of(kernel) == Operation::binary_cross_entropy)
      targets.push_back(attributes_as<LossAttributes>(kernel).target);
  }
  EXPECT_EQ(targets, (std::vector<float>{1, 0, 1}));
}

TEST(Dcgan, TrainsTheGeneratorThroughTheUpdatedDiscriminator) {
  const Graph graph = built("dcgan", {});
  const auto judged = find_tensor(graph, "discriminator.main.0.weight");
  const auto updated = uses(graph, judged, &Kernel::outputs);
  ASSERT_EQ(updated.size(), 1U);
  const auto loss = uses(graph, find_tensor(graph, "g"), &Kernel::outputs);
  const auto read = uses(graph, judged, &Kernel::inputs);
  const auto between = [&](std::size_t position) {
    return position > updated[0] && position < loss[0] && graph.kernels[position].phase == Phase::forward;
  };
  EXPECT_EQ(std::count_if(read.begin(), read.end(), between), 1);
}

TEST(Dcgan, DoesNotDifferentiateTheGeneratorForTheDiscriminator) {
  const Graph graph = built("dcgan", {});
  const auto updated = uses(graph, find_tensor(graph, "discriminator.main.0.weight"), &Kernel::outputs);
  ASSERT_EQ(updated.size(), 1U);
  for (std::size_t i = 0; i < updated[0]; ++i) {
    const Kernel& kernel = graph.kernels[i];
    EXPECT_FALSE(kernel.phase == Phase::backward && kernel.name.starts_with("generator")) << kernel.name;
  }
}

TEST(Dcgan, CanBeBuiltSmall) {
  const Graph graph = zoo::dcgan_graph("small", {.batch = 2}, {.latent = 4, .features = 2, .side = 16});
  EXPECT_TRUE(validate(graph).ok());
  EXPECT_EQ(graph[find_tensor(graph, "generator.main.6.weight")].shape, (Shape{2, 3, 4, 4}));
  EXPECT_THROW(zoo::dcgan_graph("odd", {.batch = 2}, {.side = 24}), GraphError);
}

TEST(Inference, HasTheSameWeightsAndNoGradients) {
  const Graph graph = build_inference("resnet32", {.batch = 5}).value();
  EXPECT_TRUE(validate(graph).ok());
  EXPECT_EQ(result_names(graph), std::vector<std::string>{"logits"});
  EXPECT_EQ(graph[graph.results[0]].shape, (Shape{5, 10}));
  EXPECT_EQ(names(graph, TensorKind::weight), names(built("resnet32", {.batch = 5}), TensorKind::weight));
  EXPECT_TRUE(names(graph, TensorKind::gradient).empty());
  EXPECT_TRUE(std::all_of(graph.kernels.begin(), graph.kernels.end(),
                          [](const Kernel& kernel) { return kernel.phase == Phase::forward; }));
}

}  // namespace
}  // namespace terrace

#include "train/picture_data.hpp"

#include <gtest/gtest.h>

#include "terrace/models.hpp"
#include "train/evaluate.hpp"

namespace terrace {
namespace {

/// Pictures that are as bright as their number, labelled in turn.
LabelledImages made_pictures(std::size_t count) {
  LabelledImages data{kFashionMnistSide, kFashionMnistSide, {}, {}};
  for (std::size_t i = 0; i < count; ++i) {
    data.pixels.insert(data.pixels.end(), data.pixels_per_image(), static_cast<std::uint8_t>(i));
    data.labels.push_back(static_cast<std::uint8_t>(i % kFashionMnistClasses));
  }
  return data;
}

Trainer start(const Graph& graph) {
  return Trainer::start(compile(graph, 1).value(), {.learning_rate = 0.001F}).value();
}

template <class T>
std::vector<T> joined(std::span<T> a, std::span<T> b) {
  std::vector<T> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

TEST(PictureData, FitsNetworksForGreyPicturesOf28By28InTenClasses) {
  for (const ModelInfo& info : models()) {
    const bool fits = info.name == "mlp" || info.name == "convnet";
    EXPECT_EQ(takes_fashion_mnist(build_model(info.name, {.batch = 2}).value()), fits) << info.name;
  }
  EXPECT_TRUE(takes_fashion_mnist(build_model("mlp", {.batch = 4, .micro_batches = 2}).value()));
}

TEST(PictureData, PartsOfABatchHaveThePicturesOfTheWhole) {
  const LabelledImages pictures = made_pictures(50);
  const Graph whole_graph = build_model("mlp", {.batch = 8}).value();
  const Graph parts_graph = build_model("mlp", {.batch = 8, .micro_batches = 2}).value();
  Trainer whole = start(whole_graph), parts = start(parts_graph);
  PictureData whole_data(whole_graph, pictures, 3), parts_data(parts_graph, pictures, 3);
  for (const std::uint64_t step : {0U, 1U, 7U, 20U}) {
    whole_data.fill(step, whole);
    parts_data.fill(step, parts);
    const auto image = whole.input("image");
    const auto label = whole.integer_input("label");
    EXPECT_EQ(joined(parts.input("image.0"), parts.input("image.1")),
              std::vector(image.begin(), image.end()));
    EXPECT_EQ(joined(parts.integer_input("label.0"), parts.integer_input("label.1")),
              std::vector(label.begin(), label.end()));
  }
}

TEST(Accuracy, CountsEveryPictureOnceWhateverTheirNumber) {
  const Graph graph = build_model("mlp", {.batch = 10}).value();
  Trainer trainer = start(graph);
  // A network that says 3 whatever it sees: the share is that of the label.
  trainer.write("fc3.weight", std::vector<float>(1280));
  std::vector<float> bias(10);
  bias[3] = 1;
  trainer.write("fc3.bias", bias);
  EXPECT_DOUBLE_EQ(accuracy("mlp", trainer, made_pictures(40)).value(), 0.1);
  EXPECT_DOUBLE_EQ(accuracy("mlp", trainer, made_pictures(204)).value(), 21.0 / 204);
}

TEST(Accuracy, UsesTheTrainedWeightsAndStatistics) {
  const LabelledImages pictures = made_pictures(10);
  const Graph graph = build_model("convnet", {.batch = 10}).value();
  Trainer trainer = start(graph);
  EXPECT_LT(accuracy("convnet", trainer, pictures).value(), 0.5);
  PictureData data(graph, pictures, 0);
  for (std::uint64_t step = 0; step < 150; ++step) {
    data.fill(step, trainer);
    trainer.step();
  }
  EXPECT_GT(accuracy("convnet", trainer, pictures).value(), 0.8) << "ten pictures are learnt by heart";
}

}  // namespace
}  // namespace terrace

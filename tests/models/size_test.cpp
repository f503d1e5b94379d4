// The published sizes of the networks: parameters, products per image, extents on the way, bytes.
#include <gtest/gtest.h>

#include "graph/passes.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/models.hpp"

namespace terrace {
namespace {

Graph built(std::string_view name, std::int64_t batch) { return build_model(name, {.batch = batch}).value(); }

double gigabytes(std::string_view name, std::int64_t batch) {
  return static_cast<double>(Lifetimes(share_in_place(built(name, batch))).peak_bytes().count) / 1e9;
}

const Kernel* find_kernel(const Graph& graph, std::string_view name) {
  for (const Kernel& kernel : graph.kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

struct Count {
  std::string_view model;
  std::int64_t parameters;
};

// torchvision's tables of models give those of alexnet, vgg, resnet50 and resnet152, timm's those of
// inception_v4 and resnet200; Hugging Face's checkpoints those of gpt2. The others follow from their
// papers.
constexpr Count kCounts[] = {
    {"alexnet", 61'100'840},
    {"vgg16", 138'357'544},
    {"vgg19", 143'667'240},
    {"resnet32", 464'154 + 16 * 32 + 2 * 32 + 32 * 64 + 2 * 64},  // two projections with their norms
    {"resnet50", 25'557'032},
    {"resnet152", 60'192'808},
    {"resnet200", 64'673'832},
    {"densenet264", 33'337'704},
    {"inception4", 42'679'816},
    {"mobilenet", 4'231'976},
    {"dcgan", 3'576'704 + 2'765'568},
    {"lstm", 2 * 10'000 * 650 + 10'000 + 2 * (4 * 650 * (650 + 650) + 4 * 650)},
    {"bert-large", 335'174'458},
    {"gpt2", 124'439'808},
    {"gpt2-medium", 354'823'168},
    {"gpt2-xl", 1'557'611'200},
    {"mlp", 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10},
};

TEST(Models, HaveThePublishedNumberOfParameters) {
  for (const auto& [model, expected] : kCounts) EXPECT_EQ(parameters(built(model, 1)), expected) << model;
}

TEST(Models, BertLargeHasWhatItsConfigurationSays) {
  const std::int64_t hidden = 1024, wide = 4096, words = 30522;
  const std::int64_t norm = 2 * hidden, square = hidden * hidden + hidden;
  const std::int64_t embeddings = (words + 512 + 2) * hidden + norm;
  const std::int64_t layer = 4 * square + norm + 2 * hidden * wide + wide + hidden + norm;
  const std::int64_t head = square + norm + words;  // its matrix is that of the words
  EXPECT_EQ(parameters(built("bert-large", 1)), embeddings + 24 * layer + head);
}

std::int64_t convolutions(const Graph& graph) {
  return std::count_if(graph.kernels.begin(), graph.kernels.end(),
                       [](const Kernel& kernel) { return operation_of(kernel) == Operation::conv2d; });
}

TEST(Models, DeepVggsHaveAsManyLayersAsTheirNamesSay) {
  EXPECT_EQ(convolutions(built("vgg16", 1)) + 3, 16);
  EXPECT_EQ(convolutions(built("vgg19", 1)) + 3, 19);
  EXPECT_EQ(convolutions(built("vgg116", 1)) + 3, 116);
  EXPECT_EQ(convolutions(built("vgg416", 1)) + 3, 416);
}

struct Products {
  std::string_view model;
  double giga;  ///< multiplications with addition, forward, per image
};

// torchvision's and timm's tables, the paper of mobilenet; densenet264's is the sum over its layers.
constexpr Products kProducts[] = {{"alexnet", 0.714},   {"vgg16", 15.47},     {"vgg19", 19.63},
                                  {"resnet50", 4.09},   {"resnet152", 11.51}, {"mobilenet", 0.569},
                                  {"inception4", 12.3}, {"densenet264", 5.8}};

TEST(Models, MultiplyAsOftenAsPublished) {
  constexpr std::int64_t kBatch = 2;
  for (const auto& [model, giga] : kProducts) {
    double products = 0;
    for (const Kernel& kernel : built(model, kBatch).kernels) {
      const bool counts =
          operation_of(kernel) == Operation::conv2d || operation_of(kernel) == Operation::linear;
      if (counts && kernel.phase == Phase::forward) products += kernel.flops / 2;
    }
    EXPECT_NEAR(products / kBatch / 1e9, giga, 0.02 * giga) << model;
  }
}

struct Landmark {
  std::string_view model, kernel;
  Shape output;
};

TEST(Models, HaveThePublishedExtentsOnTheWay) {
  const Landmark landmarks[] = {
      {"alexnet", "features.10:conv2d", {2, 256, 13, 13}},
      {"vgg16", "features.28:conv2d", {2, 512, 14, 14}},
      {"resnet32", "layer3.4.conv2:conv2d", {2, 64, 8, 8}},
      {"resnet50", "conv1:conv2d", {2, 64, 112, 112}},
      {"resnet50", "layer1.0.downsample.0:conv2d", {2, 256, 56, 56}},
      {"resnet50", "layer4.2.conv3:conv2d", {2, 2048, 7, 7}},
      {"densenet264", "features.denseblock3.denselayer64.conv2:concat", {2, 256 + 64 * 32, 14, 14}},
      {"densenet264", "features.transition3.conv:avg_pool2d", {2, 1152, 7, 7}},
      {"inception4", "features.6.branch3.1.conv:concat", {2, 384, 35, 35}},
      {"inception4", "features.11.branch3.1.conv:concat", {2, 1024, 17, 17}},
      {"inception4", "features.21.branch3.1.conv:concat", {2, 1536, 8, 8}},
      {"mobilenet", "features.13.pointwise:conv2d", {2, 1024, 7, 7}},
      {"dcgan", "generator.main.12:conv_transpose2d", {2, 3, 64, 64}},
      {"dcgan", "discriminator.main.11:conv2d", {2, 1, 1, 1}},
      {"lstm", "lstm.l1:lstm", {35, 2, 650}},
      {"bert-large", "encoder.layer.23.attention.self.value:softmax", {2, 16, 512, 512}},
      {"bert-large", "cls.predictions.decoder:linear", {2 * 512, 30522}},
      {"gpt2", "h.11.attn.c_attn:softmax", {2, 12, 1024, 1024}},
      {"gpt2-xl", "lm_head:linear", {2 * 1024, 50257}},
  };
  for (const auto& [model, name, output] : landmarks) {
    const Graph graph = built(model, 2);
    const Kernel* kernel = find_kernel(graph, name);
    ASSERT_NE(kernel, nullptr) << model << " " << name;
    EXPECT_EQ(kernel->outputs[0].shape, output) << name << " " << to_string(kernel->outputs[0].shape);
  }
}

struct Footprint {
  std::string_view model;
  std::int64_t batch;
  double gigabytes;
};

// 001 Table 1 and 003 Table III, for the networks whose memory does not depend on how a framework joins or
// fuses what the paper leaves open.
constexpr Footprint kFootprints[] = {{"vgg19", 2048, 143}, {"resnet200", 512, 132}, {"resnet200", 2560, 651},
                                     {"vgg416", 256, 520}, {"vgg116", 320, 175},    {"resnet200", 2048, 529}};

TEST(Models, NeedAsMuchMemoryAsThePapersMeasured) {
  for (const auto& [model, batch, expected] : kFootprints) {
    EXPECT_NEAR(gigabytes(model, batch), expected, 0.03 * expected) << model << " " << batch;
  }
}

TEST(Models, OfThePapersLargestSizesCanBeBuilt) {
  EXPECT_GT(gigabytes("densenet264", 3072), 500);
  EXPECT_GT(gigabytes("inception4", 6144), 500);
}

}  // namespace
}  // namespace terrace

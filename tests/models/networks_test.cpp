// The networks in other sizes than the published ones, and what their weights start with.
#include <gtest/gtest.h>

#include <cmath>

#include "terrace/networks.hpp"

namespace terrace {
namespace {

using namespace networks;

class Networks : public testing::Test {
 protected:
  Value image(std::int64_t channels, std::int64_t side) {
    return net_.input("image", {2, channels, side, side});
  }
  Value tokens(const Shape& shape) { return net_.input("tokens", shape, DataType::i32); }
  const Tensor& weight(std::string_view name) {
    const TensorId id = find_tensor(net_.graph(), name);
    if (!id) throw std::out_of_range(std::string(name));
    return net_.graph()[id];
  }
  void expect_normal(std::string_view name, double mean, double deviation) {
    const Initial& initial = weight(name).initial;
    EXPECT_EQ(initial.kind, Initial::Kind::normal) << name;
    EXPECT_FLOAT_EQ(initial.a, static_cast<float>(mean)) << name;
    EXPECT_FLOAT_EQ(initial.b, static_cast<float>(deviation)) << name;
  }
  void expect_constant(std::string_view name, float value) {
    EXPECT_EQ(weight(name).initial, (Initial{Initial::Kind::constant, value, 0})) << name;
  }
  void expect_uniform(std::string_view name, double bound) {
    const Initial& initial = weight(name).initial;
    EXPECT_EQ(initial.kind, Initial::Kind::uniform) << name;
    EXPECT_FLOAT_EQ(initial.a, static_cast<float>(-bound)) << name;
    EXPECT_FLOAT_EQ(initial.b, static_cast<float>(bound)) << name;
  }
  /// Trains on what a network made, which shows that it can be.
  void expect_trainable(Value logits, std::int64_t rows, std::int64_t classes) {
    EXPECT_EQ(logits.shape, (Shape{rows, classes}));
    net_.train(net_.cross_entropy(logits, net_.input("label", {rows}, DataType::i32)), {});
    EXPECT_TRUE(validate(net_.graph()).ok());
  }

  Net net_{"small"};
};

TEST_F(Networks, SmallAlexNet) {
  expect_trainable(alexnet(net_, image(3, 64), {.width = 4, .hidden = 8, .classes = 5}), 2, 5);
  EXPECT_EQ(weight("features.3.weight").shape, (Shape{12, 4, 5, 5}));
  expect_uniform("features.3.bias", 1 / std::sqrt(4.0 * 25));
}

TEST_F(Networks, SmallVgg) {
  const VggOptions options{.convolutions = {1, 1, 2, 1, 1}, .width = 4, .hidden = 8, .classes = 5};
  expect_trainable(vgg(net_, image(3, 32), options), 2, 5);
  EXPECT_EQ(weight("features.14.weight").shape, (Shape{32, 32, 3, 3}));
  expect_normal("features.0.weight", 0, std::sqrt(2.0 / (4 * 9)));
  expect_constant("features.0.bias", 0);
  expect_normal("classifier.3.weight", 0, 0.01);
  expect_constant("classifier.3.bias", 0);
}

TEST_F(Networks, SmallResNet) {
  expect_trainable(resnet(net_, image(3, 32), {.layers = {1, 2}, .width = 4, .classes = 5}), 2, 5);
  EXPECT_EQ(weight("layer2.1.conv1.weight").shape, (Shape{8, 32, 1, 1}));
  expect_normal("conv1.weight", 0, std::sqrt(2.0 / (4 * 49)));
  expect_uniform("fc.bias", 1 / std::sqrt(32.0));
}

TEST_F(Networks, ResNetForSmallImagesKeepsTheirExtentsInTheStem) {
  const ResNetOptions options{
      .block = ResNetOptions::Block::basic, .layers = {1, 1}, .width = 4, .classes = 5, .small_input = true};
  expect_trainable(resnet(net_, image(3, 8), options), 2, 5);
  EXPECT_EQ(weight("conv1.weight").shape, (Shape{4, 3, 3, 3}));
  EXPECT_EQ(weight("layer2.0.downsample.0.weight").shape, (Shape{8, 4, 1, 1}));
  EXPECT_FALSE(find_tensor(net_.graph(), "layer1.0.downsample.0.weight"));
}

TEST_F(Networks, SmallDenseNet) {
  expect_trainable(densenet(net_, image(3, 32), {.blocks = {2, 3}, .growth = 4, .classes = 5}), 2, 5);
  EXPECT_EQ(weight("features.denseblock2.denselayer3.conv1.weight").shape, (Shape{16, 8 + 2 * 4, 1, 1}));
  EXPECT_EQ(weight("features.norm3.weight").shape, (Shape{8 + 3 * 4}));
  expect_normal("features.conv0.weight", 0, std::sqrt(2.0 / (3 * 49)));
  expect_constant("classifier.bias", 0);
}

TEST_F(Networks, SmallInception) {
  const InceptionOptions options{.blocks = {1, 1, 1}, .narrowing = 16, .classes = 5};
  expect_trainable(inception4(net_, image(3, 75), options), 2, 5);
  EXPECT_EQ(weight("features.10.branch2_3b.conv.weight").shape, (Shape{16, 32, 3, 1}));
}

TEST_F(Networks, InceptionRefusesToBeNarrowedByWhatDividesNotItsChannels) {
  EXPECT_THROW(inception4(net_, image(3, 75), {.narrowing = 3}), GraphError);
  EXPECT_THROW(inception4(net_, image(3, 75), {.narrowing = 0}), GraphError);
}

TEST_F(Networks, SmallMobileNet) {
  expect_trainable(mobilenet(net_, image(3, 64), {.width = 4, .classes = 5}), 2, 5);
  EXPECT_EQ(weight("features.13.depthwise.weight").shape, (Shape{128, 1, 3, 3}));
  EXPECT_EQ(weight("features.13.pointwise.weight").shape, (Shape{128, 128, 1, 1}));
}

TEST_F(Networks, DcganStartsAsItsPaperSays) {
  dcgan_discriminator(net_, image(3, 64), {});
  expect_normal("discriminator.main.2.weight", 0, 0.02);
  expect_normal("discriminator.main.3.weight", 1, 0.02);
  expect_constant("discriminator.main.3.bias", 0);
}

TEST_F(Networks, SmallLstm) {
  expect_trainable(lstm(net_, tokens({7, 2}), {.vocabulary = 11, .hidden = 6, .layers = 3}), 14, 11);
  for (const char* name : {"embedding.weight", "lstm.l0.weight_ih", "lstm.l1.weight_hh", "lstm.l2.bias",
                           "decoder.weight", "decoder.bias"})
    expect_uniform(name, 0.05);
}

TEST_F(Networks, SmallBert) {
  const BertOptions options{.vocabulary = 11, .positions = 9, .hidden = 8, .layers = 2, .heads = 2};
  expect_trainable(bert(net_, tokens({2, 7}), options), 14, 11);
  expect_normal("encoder.layer.1.attention.self.query.weight", 0, 0.02);
  expect_constant("encoder.layer.1.attention.self.query.bias", 0);
  EXPECT_EQ(weight("encoder.layer.1.intermediate.dense.weight").shape, (Shape{32, 8}));
  EXPECT_EQ(weight("cls.predictions.bias").shape, (Shape{11}));
}

TEST_F(Networks, SmallGpt) {
  const GptOptions options{.vocabulary = 11, .positions = 9, .hidden = 8, .layers = 2, .heads = 2};
  expect_trainable(gpt(net_, tokens({2, 7}), options), 14, 11);
  expect_normal("h.0.attn.c_attn.weight", 0, 0.02);
  expect_normal("h.0.mlp.c_proj.weight", 0, 0.02 / 2);
  EXPECT_EQ(weight("h.0.mlp.c_fc.weight").shape, (Shape{32, 8}));
}

TEST_F(Networks, TransformersWithoutDropoutDropNothing) {
  const GptOptions options{
      .vocabulary = 11, .positions = 9, .hidden = 8, .layers = 2, .heads = 2, .dropout = 0};
  gpt(net_, tokens({2, 7}), options);
  for (const Kernel& kernel : net_.graph().kernels) EXPECT_NE(operation_of(kernel), Operation::dropout);
}

TEST_F(Networks, OnlyGptLooksBackAlone) {
  gpt(net_, tokens({1, 4}), {.vocabulary = 11, .positions = 9, .hidden = 8, .layers = 1, .heads = 2});
  bert(net_, net_.input("words", {1, 4}, DataType::i32),
       {.vocabulary = 11, .positions = 9, .hidden = 8, .layers = 1, .heads = 2});
  std::vector<bool> causal;
  for (const Kernel& kernel : net_.graph().kernels) {
    if (operation_of(kernel) == Operation::softmax)
      causal.push_back(attributes_as<SoftmaxAttributes>(kernel).causal);
  }
  EXPECT_EQ(causal, (std::vector<bool>{true, false}));
}

TEST_F(Networks, AttentionIsScaledByTheRootOfItsDepth) {
  gpt(net_, tokens({1, 4}), {.vocabulary = 11, .positions = 9, .hidden = 32, .layers = 1, .heads = 2});
  for (const Kernel& kernel : net_.graph().kernels) {
    if (operation_of(kernel) != Operation::matmul) continue;
    const auto& options = attributes_as<MatmulAttributes>(kernel);
    EXPECT_EQ(options.scale, options.transpose_b ? 0.25F : 1.0F);
  }
}

TEST_F(Networks, SmallConvNet) {
  expect_trainable(convnet(net_, image(1, 28), {.channels = {4, 8}, .classes = 5}), 2, 5);
  EXPECT_EQ(weight("conv2.weight").shape, (Shape{8, 4, 3, 3}));
  EXPECT_EQ(weight("fc.weight").shape, (Shape{5, 8 * 7 * 7}));
}

TEST_F(Networks, SmallMlp) {
  expect_trainable(mlp(net_, image(1, 4), {.hidden = {7}, .classes = 5}), 2, 5);
  EXPECT_EQ(weight("fc1.weight").shape, (Shape{7, 16}));
  EXPECT_EQ(weight("fc2.weight").shape, (Shape{5, 7}));
}

}  // namespace
}  // namespace terrace

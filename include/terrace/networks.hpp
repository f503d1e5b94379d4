// SPDX-License-Identifier: Apache-2.0
// The networks of the zoo as functions over Net: from an image or tokens to logits, in any size.
//
//   Net net("small resnet");
//   Value image = net.input("image", {8, 3, 64, 64});
//   Value logits = networks::resnet(net, image, {.layers = {1, 1, 1, 1}, .width = 8, .classes = 10});
//
// Options start at the published sizes. Weights have the names of the implementation that each comment cites,
// and its initial values. Where that implementation pools adaptively before its last layers, these take the
// image as it comes: the same thing at the published image size. Images are [batch, channels, height, width],
// tokens i32 [batch, sequence] unless said. What does not fit throws GraphError.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "terrace/net.hpp"

namespace terrace::networks {

/// torchvision's: "One weird trick", Krizhevsky 2014.
struct AlexNetOptions {
  std::int64_t width = 64;  ///< channels of the first convolution; the others follow
  std::int64_t hidden = 4096, classes = 1000;
  float dropout = 0.5F;
};
Value alexnet(Net& net, Value image, const AlexNetOptions& options);

/// torchvision's, without normalisation: Simonyan and Zisserman 2015.
struct VggOptions {
  std::array<std::int64_t, 5> convolutions{2, 2, 3, 3, 3};  ///< of each stage
  std::int64_t width = 64;                                  ///< channels of the first stage
  std::int64_t hidden = 4096, classes = 1000;
  float dropout = 0.5F;
};
Value vgg(Net& net, Value image, const VggOptions& options);

/// torchvision's: He et al. 2016, version 1, with the stride of a bottleneck in its 3x3 convolution.
struct ResNetOptions {
  enum class Block : std::uint8_t { basic, bottleneck };
  Block block = Block::bottleneck;
  std::vector<std::int64_t> layers{3, 4, 6, 3};  ///< blocks of each stage
  std::int64_t width = 64;                       ///< of the first stage; every further one doubles it
  std::int64_t classes = 1000;
  bool small_input = false;  ///< for images of 32x32: starts with a 3x3 convolution and does not pool
};
Value resnet(Net& net, Value image, const ResNetOptions& options);

/// torchvision's: Huang et al. 2017, with bottlenecks and halving transitions (DenseNet-BC).
struct DenseNetOptions {
  std::vector<std::int64_t> blocks{6, 12, 64, 48};  ///< layers of each dense block
  std::int64_t growth = 32;
  std::int64_t classes = 1000;
};
Value densenet(Net& net, Value image, const DenseNetOptions& options);

/// timm's inception_v4: Szegedy et al. 2017. Images of at least 75x75.
struct InceptionOptions {
  std::array<std::int64_t, 3> blocks{4, 7, 3};  ///< of kind A, B and C
  std::int64_t narrowing = 1;                   ///< divides every number of channels; a divisor of 32
  std::int64_t classes = 1000;
  float dropout = 0.2F;
};
Value inception4(Net& net, Value image, const InceptionOptions& options);

/// Howard et al. 2017, version 1.
struct MobileNetOptions {
  std::int64_t width = 32;  ///< channels of the first convolution; the others follow
  std::int64_t classes = 1000;
};
Value mobilenet(Net& net, Value image, const MobileNetOptions& options);

/// The example of PyTorch: Radford et al. 2016.
struct DcganOptions {
  std::int64_t latent = 100, features = 64, channels = 3;
  std::int64_t side = 64;  ///< of the images: a power of two, at least 8
};
/// Appends the generator, from noise [batch, latent, 1, 1] to images within -1 and 1; weights
/// `generator.main.N`.
Value dcgan_generator(Net& net, Value noise, const DcganOptions& options);
/// Appends the discriminator, which says how likely an image is real, as a logit: [batch, 1, 1, 1]; weights
/// `discriminator.main.N`.
Value dcgan_discriminator(Net& net, Value image, const DcganOptions& options);

/// Zaremba et al. 2014, the medium network for the Penn Treebank. Tokens are [time, batch]; the state starts
/// at zero in every step. One bias per gate: 19.8 M parameters. Logits are [time * batch, vocabulary].
struct LstmOptions {
  std::int64_t vocabulary = 10000, hidden = 650, layers = 2;
  float dropout = 0.5F;
};
Value lstm(Net& net, Value tokens, const LstmOptions& options);

/// Hugging Face's BertForMaskedLM without its prefix `bert.`: Devlin et al. 2019, the large network. The
/// embeddings, 24 layers and the head over words have 335.17 M parameters; the pooler, with which the encoder
/// alone has 335.14 M, takes no part in masked words. All tokens belong to one sentence and none is padding.
/// Logits are [batch * sequence, vocabulary].
struct BertOptions {
  std::int64_t vocabulary = 30522, positions = 512;
  std::int64_t hidden = 1024, layers = 24, heads = 16;
  float dropout = 0.1F;
};
Value bert(Net& net, Value tokens, const BertOptions& options);

/// Hugging Face's GPT2LMHeadModel without its prefix `transformer.`, linear weights as [out, in]: Radford et
/// al. 2019. Logits are [batch * sequence, vocabulary].
struct GptOptions {
  std::int64_t vocabulary = 50257, positions = 1024;
  std::int64_t hidden = 768, layers = 12, heads = 12;
  float dropout = 0.1F;
};
Value gpt(Net& net, Value tokens, const GptOptions& options);

/// Linear layers `fc1`, `fc2` and on, with relu between them.
struct MlpOptions {
  std::vector<std::int64_t> hidden{256, 128};
  std::int64_t classes = 10;
};
Value mlp(Net& net, Value image, const MlpOptions& options);

/// Stages of a 3x3 convolution, batch normalisation, relu and halving, then one linear layer: `conv1`, `bn1`
/// and on, `fc`.
struct ConvNetOptions {
  std::vector<std::int64_t> channels{32, 64, 128};
  std::int64_t classes = 10;
};
Value convnet(Net& net, Value image, const ConvNetOptions& options);

}  // namespace terrace::networks

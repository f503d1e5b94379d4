#include <array>

#include "nn/models/model.hpp"
#include "terrace/networks.hpp"

namespace terrace::zoo {
namespace {

using namespace networks;

constexpr Optimizer sgd(float weight_decay) { return {.momentum = 0.9F, .weight_decay = weight_decay}; }
constexpr Optimizer kPlainSgd{.momentum = 0};
constexpr Optimizer kAdam{.kind = Optimizer::Kind::adam};
constexpr Optimizer kAdamW{.kind = Optimizer::Kind::adam, .weight_decay = 0.01F, .decoupled_decay = true};
constexpr Optimizer kAdamOfDcgan{.kind = Optimizer::Kind::adam, .beta1 = 0.5F};

constexpr std::int64_t kImageNet = 224;

constexpr Classifier imagenet(Value (*logits)(Net&, Value)) { return {3, kImageNet, logits}; }
constexpr Classifier fashion(Value (*logits)(Net&, Value)) { return {1, 28, logits}; }

/// VGG-16 has 13 convolutions in five stages and three linear layers. The deeper ones add the same number of
/// convolutions to every stage, as Rhu et al. (vDNN, 2016) did: 16 + 5 * 20 = 116 layers, 16 + 5 * 80 = 416.
/// (001 says 20 per stage for its Vgg416; only 80 gives that name, and the footprint of 003 Table III.)
Value deeper_vgg(Net& net, Value image, std::int64_t extra) {
  VggOptions options;
  for (std::int64_t& convolutions : options.convolutions) convolutions += extra;
  return vgg(net, image, options);
}

Value vgg19(Net& net, Value image) { return vgg(net, image, {.convolutions = {2, 2, 4, 4, 4}}); }

Value bottlenecks(Net& net, Value image, std::vector<std::int64_t> layers) {
  return resnet(net, image, {.layers = std::move(layers)});
}

/// 6 * 5 + 2 = 32 layers. Where the width changes, a projection (`downsample`) stands for the padded identity
/// of He et al.: that makes 0.467 M parameters instead of 0.464 M.
Value resnet32(Net& net, Value image) {
  return resnet(net, image,
                {.block = ResNetOptions::Block::basic,
                 .layers = {5, 5, 5},
                 .width = 16,
                 .classes = 10,
                 .small_input = true});
}

Value gpt_of(Net& net, Value tokens, std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return gpt(net, tokens, {.hidden = hidden, .layers = layers, .heads = heads});
}

constexpr LanguageModel transformer(std::int64_t sequence, Value (*logits)(Net&, Value)) {
  return {LanguageModel::Order::batch_first, sequence, sequence, logits};
}

constexpr std::array kTable{
    Model{{"mlp", "three linear layers for 28x28 images", "a first network", 128},
          kAdam,
          fashion([](Net& net, Value image) { return mlp(net, image, {}); })},
    Model{{"convnet", "three convolutions for 28x28 images", "a first network", 128},
          kAdam,
          fashion([](Net& net, Value image) { return convnet(net, image, {}); })},
    Model{{"alexnet", "5 convolutions, 224x224", "Krizhevsky 2014, as in torchvision", 128},
          sgd(5e-4F),
          imagenet([](Net& net, Value image) { return alexnet(net, image, {}); })},
    Model{{"vgg16", "16 layers, 224x224", "Simonyan and Zisserman 2015, as in torchvision", 32},
          sgd(5e-4F),
          imagenet([](Net& net, Value image) { return vgg(net, image, {}); })},
    Model{{"vgg19", "19 layers, 224x224", "Simonyan and Zisserman 2015, as in torchvision", 32},
          sgd(5e-4F),
          imagenet(vgg19)},
    Model{{"vgg116", "vgg16 with 20 more convolutions per stage", "Rhu et al. 2016 (vDNN)", 32},
          sgd(5e-4F),
          imagenet([](Net& net, Value image) { return deeper_vgg(net, image, 20); })},
    Model{{"vgg416", "vgg16 with 80 more convolutions per stage", "Rhu et al. 2016 (vDNN)", 32},
          sgd(5e-4F),
          imagenet([](Net& net, Value image) { return deeper_vgg(net, image, 80); })},
    Model{{"resnet32", "32 layers for CIFAR-10, 32x32, version 1", "He et al. 2016, with projections", 128},
          sgd(1e-4F),
          Classifier{3, 32, resnet32}},
    Model{{"resnet50", "bottlenecks 3, 4, 6, 3, 224x224", "He et al. 2016, as in torchvision", 32},
          sgd(1e-4F),
          imagenet([](Net& net, Value image) {
            return bottlenecks(net, image, {3, 4, 6, 3});
          })},
    Model{{"resnet152", "bottlenecks 3, 8, 36, 3, 224x224", "He et al. 2016, as in torchvision", 32},
          sgd(1e-4F),
          imagenet([](Net& net, Value image) {
            return bottlenecks(net, image, {3, 8, 36, 3});
          })},
    Model{{"resnet200", "bottlenecks 3, 24, 36, 3, 224x224", "He et al. 2016, version 1", 32},
          sgd(1e-4F),
          imagenet([](Net& net, Value image) {
            return bottlenecks(net, image, {3, 24, 36, 3});
          })},
    Model{{"densenet264", "dense blocks 6, 12, 64, 48, growth 32, 224x224", "Huang et al. 2017, BC", 32},
          sgd(1e-4F),
          imagenet([](Net& net, Value image) { return densenet(net, image, {}); })},
    Model{{"inception4", "Inception v4, 299x299", "Szegedy et al. 2017, as in timm", 32},
          sgd(1e-4F),
          Classifier{3, 299, [](Net& net, Value image) { return inception4(net, image, {}); }}},
    Model{{"mobilenet", "MobileNet version 1, width 1.0, 224x224", "Howard et al. 2017", 64},
          sgd(4e-5F),
          imagenet([](Net& net, Value image) { return mobilenet(net, image, {}); })},
    Model{{"dcgan", "generator and discriminator, 64x64", "Radford et al. 2016, as PyTorch's example", 64},
          kAdamOfDcgan,
          OwnStep{[](std::string_view name, const Step& step) { return dcgan_graph(name, step, {}); }}},
    Model{{"lstm", "2 layers of 650 for the Penn Treebank", "Zaremba et al. 2014, medium", 20},
          kPlainSgd,
          LanguageModel{LanguageModel::Order::time_first, 35, 0,
                        [](Net& net, Value tokens) { return lstm(net, tokens, {}); }}},
    Model{{"bert-large", "24 layers of 1024, masked words", "Devlin et al. 2019, BertForMaskedLM", 8},
          kAdamW,
          transformer(512, [](Net& net, Value tokens) { return bert(net, tokens, {}); })},
    Model{{"gpt2", "12 layers of 768", "Radford et al. 2019, GPT2LMHeadModel", 4},
          kAdamW,
          transformer(1024, [](Net& net, Value tokens) { return gpt(net, tokens, {}); })},
    Model{{"gpt2-medium", "24 layers of 1024", "Radford et al. 2019, GPT2LMHeadModel", 4},
          kAdamW,
          transformer(1024, [](Net& net, Value tokens) { return gpt_of(net, tokens, 24, 1024, 16); })},
    Model{{"gpt2-xl", "48 layers of 1600", "Radford et al. 2019, GPT2LMHeadModel", 1},
          kAdamW,
          transformer(1024, [](Net& net, Value tokens) { return gpt_of(net, tokens, 48, 1600, 25); })},
};

constexpr auto kInfos = [] {
  std::array<ModelInfo, kTable.size()> infos;
  for (std::size_t i = 0; i < infos.size(); ++i) infos[i] = kTable[i].info;
  return infos;
}();

}  // namespace

std::span<const Model> table() { return kTable; }

}  // namespace terrace::zoo

namespace terrace {

std::span<const ModelInfo> models() { return zoo::kInfos; }

}  // namespace terrace

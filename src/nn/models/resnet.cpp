#include "nn/models/layers.hpp"
#include "terrace/networks.hpp"

namespace terrace::networks {
namespace {

using Block = ResNetOptions::Block;

/// How much wider a bottleneck ends than it is in its middle.
constexpr std::int64_t kExpansion = 4;

Value convolution(Net& net, std::string_view name, Value x, std::int64_t channels, std::int64_t kernel,
                  std::int64_t stride = 1) {
  return net.conv2d(name, x, channels, centred(channels, kernel, stride));
}

Value shortcut(Net& net, Value x, std::int64_t channels, std::int64_t stride) {
  if (stride == 1 && x.shape[1] == channels) return x;
  return net.batch_norm("downsample.1", convolution(net, "downsample.0", x, channels, 1, stride));
}

Value basic(Net& net, Value x, std::int64_t width, std::int64_t stride) {
  Value y = net.batch_norm("bn1", convolution(net, "conv1", x, width, 3, stride), kNormRelu);
  y = net.batch_norm("bn2", convolution(net, "conv2", y, width, 3));
  return net.add(y, shortcut(net, x, width, stride), {.relu = true});
}

Value bottleneck(Net& net, Value x, std::int64_t width, std::int64_t stride) {
  Value y = net.batch_norm("bn1", convolution(net, "conv1", x, width, 1), kNormRelu);
  y = net.batch_norm("bn2", convolution(net, "conv2", y, width, 3, stride), kNormRelu);
  y = net.batch_norm("bn3", convolution(net, "conv3", y, width * kExpansion, 1));
  return net.add(y, shortcut(net, x, width * kExpansion, stride), {.relu = true});
}

Value stem(Net& net, Value x, const ResNetOptions& options) {
  if (options.small_input) {
    return net.batch_norm("bn1", convolution(net, "conv1", x, options.width, 3), kNormRelu);
  }
  x = net.batch_norm("bn1", convolution(net, "conv1", x, options.width, 7, 2), kNormRelu);
  return net.max_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
}

}  // namespace

Value resnet(Net& net, Value x, const ResNetOptions& options) {
  const auto block = options.block == Block::basic ? basic : bottleneck;
  x = stem(net, x, options);
  for (std::size_t stage = 0; stage < options.layers.size(); ++stage) {
    const auto in_stage = net.scope("layer" + std::to_string(stage + 1));
    for (std::int64_t i = 0; i < options.layers[stage]; ++i) {
      const auto in_block = net.scope(std::to_string(i));
      x = block(net, x, options.width << stage, i == 0 && stage > 0 ? 2 : 1);
    }
  }
  return net.linear("fc", net.flatten(net.global_avg_pool2d(x)), options.classes);
}

}  // namespace terrace::networks

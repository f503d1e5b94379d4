#include "nn/models/layers.hpp"
#include "terrace/networks.hpp"

namespace terrace::networks {
namespace {

/// Channels between the two convolutions of a layer, in units of the growth.
constexpr std::int64_t kBottleneck = 4;

Value convolution(Net& net, std::string_view name, Value x, std::int64_t channels, std::int64_t kernel,
                  std::int64_t stride = 1) {
  Net::Conv options = centred(channels, kernel, stride);
  options.initial = kaiming(x.shape[1] * kernel * kernel);
  return net.conv2d(name, x, channels, options);
}

/// Appends `growth` channels to x. What came before is copied along with them, as torchvision does unless
/// told to be memory_efficient.
Value dense_layer(Net& net, Value x, std::int64_t growth) {
  Value y = net.batch_norm("norm1", x, kNormRelu);
  y = convolution(net, "conv1", y, kBottleneck * growth, 1);
  y = net.batch_norm("norm2", y, kNormRelu);
  y = convolution(net, "conv2", y, growth, 3);
  return net.concat({x, y});
}

Value transition(Net& net, Value x) {
  const Value y = net.batch_norm("norm", x, kNormRelu);
  return net.avg_pool2d(convolution(net, "conv", y, x.shape[1] / 2, 1), {.kernel = {2, 2}});
}

}  // namespace

Value densenet(Net& net, Value x, const DenseNetOptions& options) {
  const std::size_t blocks = options.blocks.size();
  {
    const auto in_features = net.scope("features");
    x = net.batch_norm("norm0", convolution(net, "conv0", x, 2 * options.growth, 7, 2), kNormRelu);
    x = net.max_pool2d(x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    for (std::size_t block = 1; block <= blocks; ++block) {
      for (std::int64_t i = 1; i <= options.blocks[block - 1]; ++i) {
        const auto in_block = net.scope("denseblock" + std::to_string(block));
        const auto in_layer = net.scope("denselayer" + std::to_string(i));
        x = dense_layer(net, x, options.growth);
      }
      const auto in_transition = net.scope("transition" + std::to_string(block));
      if (block < blocks) x = transition(net, x);
    }
    x = net.batch_norm("norm" + std::to_string(blocks + 1), x, kNormRelu);
  }
  x = net.flatten(net.global_avg_pool2d(x));
  return net.linear("classifier", x, options.classes, {.initial = uniform_fan_in(x.shape[1])});
}

}  // namespace terrace::networks

#include <algorithm>

#include "nn/models/layers.hpp"
#include "terrace/networks.hpp"

namespace terrace::networks {
namespace {

Value convolution(Net& net, const std::string& name, Value x, std::int64_t channels) {
  const Net::Conv options{.kernel = {3, 3}, .padding = {1, 1}, .initial = kaiming(channels * 9)};
  {
    // Made ahead of the convolution, which would give its bias other values than zero.
    const auto scope = net.scope(name);
    net.parameter("weight", {channels, x.shape[1], 3, 3}, *options.initial);
    net.parameter("bias", {channels}, kZeros);
  }
  return net.relu(net.conv2d(name, x, channels, options));
}

}  // namespace

Value vgg(Net& net, Value x, const VggOptions& options) {
  std::int64_t place = 0;  // in torchvision's list, where relu and pooling count too
  for (std::size_t stage = 0; stage < options.convolutions.size(); ++stage) {
    const std::int64_t channels = options.width << std::min<std::size_t>(stage, 3);
    for (std::int64_t i = 0; i < options.convolutions[stage]; ++i, place += 2) {
      x = convolution(net, "features." + std::to_string(place), x, channels);
    }
    x = net.max_pool2d(x, {.kernel = {2, 2}});
    ++place;
  }
  const Net::Linear linear{.initial = normal(0.01F)};
  x = net.relu(net.linear("classifier.0", net.flatten(x), options.hidden, linear));
  x = net.dropout(x, options.dropout);
  x = net.relu(net.linear("classifier.3", x, options.hidden, linear));
  x = net.dropout(x, options.dropout);
  return net.linear("classifier.6", x, options.classes, linear);
}

}  // namespace terrace::networks

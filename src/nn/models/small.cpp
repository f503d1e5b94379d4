// Networks small enough to learn from and to test with.
#include "nn/models/layers.hpp"
#include "terrace/networks.hpp"

namespace terrace::networks {

Value mlp(Net& net, Value image, const MlpOptions& options) {
  Value x = net.flatten(image);
  int number = 1;
  for (const std::int64_t features : options.hidden) {
    x = net.relu(net.linear("fc" + std::to_string(number++), x, features));
  }
  return net.linear("fc" + std::to_string(number), x, options.classes);
}

Value convnet(Net& net, Value x, const ConvNetOptions& options) {
  int number = 1;
  for (const std::int64_t channels : options.channels) {
    const std::string stage = std::to_string(number++);
    x = net.conv2d("conv" + stage, x, channels, centred(channels, 3));
    x = net.max_pool2d(net.batch_norm("bn" + stage, x, kNormRelu), {.kernel = {2, 2}});
  }
  return net.linear("fc", net.flatten(x), options.classes);
}

}  // namespace terrace::networks

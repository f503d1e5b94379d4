#include "nn/models/layers.hpp"
#include "terrace/networks.hpp"

namespace terrace::networks {
namespace {

struct Step {
  std::int64_t growth;  ///< channels out, in units of the first convolution's
  std::int64_t stride;
};
/// Table 1 of the paper.
constexpr Step kSteps[] = {{2, 1},  {4, 2},  {4, 1},  {8, 2},  {8, 1},  {16, 2}, {16, 1},
                           {16, 1}, {16, 1}, {16, 1}, {16, 1}, {32, 2}, {32, 1}};

Value separable(Net& net, Value x, std::int64_t channels, std::int64_t stride) {
  Net::Conv depthwise = centred(x.shape[1], 3, stride);
  depthwise.groups = x.shape[1];
  x = net.batch_norm("depthwise_bn", net.conv2d("depthwise", x, x.shape[1], depthwise), kNormRelu);
  return net.batch_norm("pointwise_bn", net.conv2d("pointwise", x, channels, centred(channels, 1)),
                        kNormRelu);
}

}  // namespace

Value mobilenet(Net& net, Value x, const MobileNetOptions& options) {
  x = net.conv2d("features.0.conv", x, options.width, centred(options.width, 3, 2));
  x = net.batch_norm("features.0.bn", x, kNormRelu);
  int place = 1;
  for (const Step& step : kSteps) {
    const auto scope = net.scope("features." + std::to_string(place++));
    x = separable(net, x, step.growth * options.width, step.stride);
  }
  x = net.flatten(net.global_avg_pool2d(x));
  return net.linear("classifier", x, options.classes, {.initial = normal(0.01F)});
}

}  // namespace terrace::networks

// SPDX-License-Identifier: Apache-2.0
#include "nn/models/layers.hpp"
#include "terrace/networks.hpp"

namespace terrace::networks {
namespace {

constexpr float kDeviation = 0.02F;
constexpr float kSlope = 0.2F;

/// Doubles or halves the extents.
Net::Conv by_two() {
  return {
      .kernel = {4, 4}, .stride = {2, 2}, .padding = {1, 1}, .bias = false, .initial = normal(kDeviation)};
}
/// Between an image of 4x4 and one of 1x1.
Net::Conv by_four() { return {.kernel = {4, 4}, .bias = false, .initial = normal(kDeviation)}; }

/// Returns how often an image of 4x4 doubles before the last layer makes it whole.
int doublings(const DcganOptions& options) {
  int times = 0;
  while (8 << times < options.side) ++times;
  if (8 << times != options.side)
    throw GraphError("dcgan makes images whose side is a power of two from 8 on, not " +
                     std::to_string(options.side));
  return times;
}

std::string place(int number) { return "main." + std::to_string(number); }

Value norm(Net& net, const std::string& name, Value x, const NormAttributes& options = {}) {
  // Made ahead of the normalisation, which would start with ones.
  net.parameter(name + ".weight", {x.shape[1]}, normal(kDeviation, 1));
  return net.batch_norm(name, x, options);
}

}  // namespace

Value dcgan_generator(Net& net, Value x, const DcganOptions& options) {
  const auto scope = net.scope("generator");
  const int times = doublings(options);
  x = net.conv_transpose2d(place(0), x, options.features << times, by_four());
  x = norm(net, place(1), x, kNormRelu);
  int number = 3;  // in the example's list, where relu counts too
  for (int i = times - 1; i >= 0; --i) {
    x = net.conv_transpose2d(place(number), x, options.features << i, by_two());
    x = norm(net, place(number + 1), x, kNormRelu);
    number += 3;
  }
  return net.tanh(net.conv_transpose2d(place(number), x, options.channels, by_two()));
}

Value dcgan_discriminator(Net& net, Value x, const DcganOptions& options) {
  const auto scope = net.scope("discriminator");
  x = net.leaky_relu(net.conv2d(place(0), x, options.features, by_two()), kSlope);
  int number = 2;
  for (int i = 1; i <= doublings(options); ++i) {
    x = net.conv2d(place(number), x, options.features << i, by_two());
    x = net.leaky_relu(norm(net, place(number + 1), x), kSlope);
    number += 3;
  }
  return net.conv2d(place(number), x, 1, by_four());
}

}  // namespace terrace::networks

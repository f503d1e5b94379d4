// SPDX-License-Identifier: Apache-2.0
// Initial values and small groups of layers that several networks share.
#pragma once

#include <cmath>

#include "terrace/net.hpp"

namespace terrace::networks {

inline constexpr Initial kZeros{Initial::Kind::constant, 0, 0};

inline Initial normal(float deviation, float mean = 0) { return {Initial::Kind::normal, mean, deviation}; }

/// He et al. 2015: a normal distribution that keeps variances through `fan` summands and a relu.
inline Initial kaiming(std::int64_t fan) { return normal(std::sqrt(2 / static_cast<float>(fan))); }

/// Returns what PyTorch gives linear weights; naming it makes their bias start at zero.
inline Initial uniform_fan_in(std::int64_t inputs) {
  const float bound = 1 / std::sqrt(static_cast<float>(inputs));
  return {Initial::Kind::uniform, -bound, bound};
}

inline Net::Pair square(std::int64_t side) { return {side, side}; }

/// A convolution without bias that keeps the extents at stride 1, its weight by Kaiming over what one input
/// reaches.
inline Net::Conv centred(std::int64_t channels, std::int64_t kernel, std::int64_t stride = 1) {
  return {.kernel = square(kernel),
          .stride = square(stride),
          .padding = square(kernel / 2),
          .bias = false,
          .initial = kaiming(channels * kernel * kernel)};
}

inline constexpr NormAttributes kNormRelu{.relu = true};

}  // namespace terrace::networks

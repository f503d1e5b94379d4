// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/math/gelu.hpp"

#include <numbers>

#include "math/lane.hpp"
#include "math/loops.hpp"

namespace terrace::math {
namespace {

// (1 + tanh(u)) / 2 is the sigmoid of 2u, which keeps its accuracy where tanh is near -1.
constexpr float kSlope = static_cast<float>(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
constexpr float kCubic = 0.044715f;

[[gnu::always_inline]] inline float twice_u(float x) { return kSlope * x * (1 + kCubic * x * x); }

[[gnu::always_inline]] inline float slope_tanh(float x) {
  const float v = twice_u(x), tail = lane::exp(v > 0 ? -v : v);
  const float greater = 1 / (1 + tail), less = tail * greater;  // the sigmoids of |v| and -|v|
  return (v > 0 ? greater : less) + x * greater * less * kSlope * (1 + 3 * kCubic * x * x);
}

[[gnu::always_inline]] inline float slope_exact(float x) {
  const lane::Normal normal = lane::normal(x);
  return normal.below + x * normal.density;
}

}  // namespace

void gelu_forward(const float* x, Gelu kind, float* y, std::int64_t n) {
  if (kind == Gelu::exact) {
    for_elements(n, [=](std::int64_t i) { y[i] = x[i] * lane::normal(x[i]).below; });
  } else {
    for_elements(n, [=](std::int64_t i) { y[i] = x[i] * lane::sigmoid(twice_u(x[i])); });
  }
}

void gelu_backward(const float* x, const float* dy, Gelu kind, float* dx, std::int64_t n) {
  if (kind == Gelu::exact) {
    for_elements(n, [=](std::int64_t i) { dx[i] = dy[i] * slope_exact(x[i]); });
  } else {
    for_elements(n, [=](std::int64_t i) { dx[i] = dy[i] * slope_tanh(x[i]); });
  }
}

}  // namespace terrace::math

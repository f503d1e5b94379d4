// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/math/binary_cross_entropy.hpp"

#include "math/lane.hpp"
#include "math/loops.hpp"

namespace terrace::math {
namespace {

// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which never overflows.
[[gnu::always_inline]] inline float loss_of(float x, float target) {
  const float positive = x > 0 ? x : 0, size = x > 0 ? x : -x;
  return positive - target * x + lane::log1p(lane::exp(-size));
}

}  // namespace

void binary_cross_entropy_forward(const float* logits, std::int64_t n, float target, float* loss) {
  const double sum = sum_over_ranges(n, [=](std::int64_t begin, std::int64_t end) {
    double part = 0;
#pragma omp simd reduction(+ : part)
    for (std::int64_t i = begin; i < end; ++i) part += static_cast<double>(loss_of(logits[i], target));
    return part;
  });
  *loss = static_cast<float>(sum / static_cast<double>(n));
}

void binary_cross_entropy_backward(const float* logits, std::int64_t n, float target, const float* upstream,
                                   float* dlogits) {
  const float scale = *upstream / static_cast<float>(n);
  for_elements(n, [=](std::int64_t i) { dlogits[i] = scale * (lane::sigmoid(logits[i]) - target); });
}

}  // namespace terrace::math

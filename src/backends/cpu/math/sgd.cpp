// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/math/sgd.hpp"

#include "math/loops.hpp"

namespace terrace::math {

void sgd(float* weights, float* velocity, const float* gradient, std::int64_t n, const SgdOptions& options) {
  const float rate = options.rate, momentum = options.momentum, decay = options.weight_decay;
  check(velocity != nullptr || momentum == 0 || n == 0, "momentum needs a velocity");
  if (velocity == nullptr) {
    for_elements(n, [=](std::int64_t i) { weights[i] -= rate * (gradient[i] + decay * weights[i]); });
    return;
  }
  for_elements(n, [=](std::int64_t i) {
    const float moved = momentum * velocity[i] + (gradient[i] + decay * weights[i]);
    velocity[i] = moved;
    weights[i] -= rate * moved;
  });
}

}  // namespace terrace::math

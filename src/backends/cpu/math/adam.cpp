// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/math/adam.hpp"

#include <cmath>

#include "math/loops.hpp"

namespace terrace::math {

void adam(float* weights, const AdamMoments& moments, const float* gradient, std::int64_t n,
          std::int64_t step, const AdamOptions& options) {
  check(step >= 1, "the steps of Adam count from one");
  const double correction1 = 1 - std::pow(double{options.beta1}, static_cast<double>(step));
  const double correction2 = 1 - std::pow(double{options.beta2}, static_cast<double>(step));
  const auto step_size = static_cast<float>(options.rate / correction1);
  const auto inverse_root2 = static_cast<float>(1 / std::sqrt(correction2));
  const bool coupled = options.decay == WeightDecay::l2;
  const float added = coupled ? options.weight_decay : 0;
  const float kept = coupled ? 1 : 1 - options.rate * options.weight_decay;
  const float beta1 = options.beta1, rest1 = 1 - beta1, beta2 = options.beta2, rest2 = 1 - beta2;
  const float epsilon = options.epsilon;
  float *first = moments.first, *second = moments.second;
  for_elements(n, [=](std::int64_t i) {
    const float g = gradient[i] + added * weights[i];
    const float mean = beta1 * first[i] + rest1 * g;
    const float square = beta2 * second[i] + rest2 * g * g;
    first[i] = mean;
    second[i] = square;
    weights[i] = kept * weights[i] - step_size * mean / (std::sqrt(square) * inverse_root2 + epsilon);
  });
}

}  // namespace terrace::math

// Stochastic gradient descent with momentum and weight decay, as PyTorch defines it. One pass, in place.
#pragma once

#include <cstdint>

namespace terrace::math {

struct SgdOptions {
  float rate = 0.01f;
  float momentum = 0;
  float weight_decay = 0;
};

/// g = gradient + weight_decay w; velocity = momentum velocity + g; w -= rate velocity. The velocity starts
/// as zeros; it may be null where momentum is zero. Elementwise, so the number of threads changes nothing.
void sgd(float* weights, float* velocity, const float* gradient, std::int64_t n, const SgdOptions& options);

}  // namespace terrace::math

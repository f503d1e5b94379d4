// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), as PyTorch defines them. One pass, in
// place.
#pragma once

#include <cstdint>

namespace terrace::math {

enum class WeightDecay {
  l2,         ///< added to the gradient: Adam
  decoupled,  ///< taken off the weights: AdamW
};

struct AdamOptions {
  float rate = 1e-3f;
  float beta1 = 0.9f, beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0;
  WeightDecay decay = WeightDecay::l2;
};

/// What Adam remembers of each weight. Both start as zeros.
struct AdamMoments {
  float* first = nullptr;
  float* second = nullptr;
};

/// Makes step number `step` (the first is 1) on `n` weights. Elementwise, so the number of threads changes
/// nothing. pre: step >= 1
void adam(float* weights, const AdamMoments& moments, const float* gradient, std::int64_t n,
          std::int64_t step, const AdamOptions& options);

}  // namespace terrace::math

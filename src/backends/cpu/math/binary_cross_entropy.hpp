// Binary cross entropy of logits against one target for all, such as "real" or "made up" of an adversarial
// network. Thread-safe; results do not depend on the number of threads.
#pragma once

#include <cstdint>

namespace terrace::math {

/// *loss = the mean of log(1 + exp(x)) - target x over all logits x; NaN where there is none, as in PyTorch.
void binary_cross_entropy_forward(const float* logits, std::int64_t n, float target, float* loss);

/// dlogits = *upstream times the gradient of the mean loss. dlogits may be logits.
void binary_cross_entropy_backward(const float* logits, std::int64_t n, float target, const float* upstream,
                                   float* dlogits);

}  // namespace terrace::math

// SPDX-License-Identifier: Apache-2.0
// Cross entropy of rows of logits against whole labels, averaged over the rows that have one.
//
// A label is a column, or kIgnoredLabel: such a row takes no part. Any other label throws logic_error before
// anything is written. Thread-safe; results do not depend on the number of threads.
#pragma once

#include <cstdint>

#include "math/shape.hpp"

namespace terrace::math {

/// *loss = the mean of log_sum_exp[r] - logits[r, labels[r]]; NaN where no row has a label, as in PyTorch.
/// log_sum_exp[r] = log of the sum of exp(logits[r, c]), for every row: the backward pass needs it.
void cross_entropy_forward(const float* logits, const std::int32_t* labels, Rows shape, float* loss,
                           float* log_sum_exp);

/// dlogits = *upstream times the gradient of the mean loss. dlogits may be logits.
void cross_entropy_backward(const float* logits, const std::int32_t* labels, const float* log_sum_exp,
                            const float* upstream, Rows shape, float* dlogits);

}  // namespace terrace::math

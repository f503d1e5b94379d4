// Softmax over the last axis of [batch, rows, columns], as attention uses it: scaled, and masked where a row
// must not see later columns.
//
// Masked entries cost no arithmetic. Thread-safe; results do not depend on the number of threads.
#pragma once

#include <cstdint>

namespace terrace::math {

struct SoftmaxShape {
  std::int64_t batch = 0, rows = 0, columns = 0;
};

enum class Mask {
  none,
  causal,  ///< row r sees columns up to r
};

struct SoftmaxOptions {
  float scale = 1;
  Mask mask = Mask::none;
};

/// probabilities[b, r, c] = softmax over c of scale * scores[b, r, c]; 0 where masked. probabilities may be
/// scores.
void softmax_forward(const float* scores, const SoftmaxShape& shape, const SoftmaxOptions& options,
                     float* probabilities);

/// dscores = scale P (dP - sum over c of P dP); 0 where masked. dscores may be dprobabilities.
void softmax_backward(const float* probabilities, const float* dprobabilities, const SoftmaxShape& shape,
                      const SoftmaxOptions& options, float* dscores);

}  // namespace terrace::math

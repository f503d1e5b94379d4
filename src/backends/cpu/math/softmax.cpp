// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/math/softmax.hpp"

#include <algorithm>
#include <limits>

#include "math/lane.hpp"
#include "math/loops.hpp"

namespace terrace::math {
namespace {

/// Returns how many columns row `row` of the whole batch sees.
[[gnu::always_inline]] inline std::int64_t seen_columns(const SoftmaxShape& shape, Mask mask,
                                                        std::int64_t row) {
  if (mask == Mask::none) return shape.columns;
  return std::min(row % shape.rows + 1, shape.columns);
}

[[gnu::always_inline]] inline void softmax_row(const float* in, std::int64_t columns, float scale,
                                               float* out) {
  float most = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : most)
  for (std::int64_t c = 0; c < columns; ++c) most = scale * in[c] > most ? scale * in[c] : most;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < columns; ++c) {
    const float share = lane::exp(scale * in[c] - most);
    out[c] = share;
    sum += share;
  }
  const float factor = 1 / sum;
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) out[c] *= factor;
}

[[gnu::always_inline]] inline void gradient_row(const float* p, const float* dp, std::int64_t columns,
                                                float scale, float* out) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < columns; ++c) sum += p[c] * dp[c];
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) out[c] = scale * p[c] * (dp[c] - sum);
}

void check_shape(const SoftmaxShape& shape) {
  check(shape.batch >= 0 && shape.rows >= 0 && shape.columns >= 0, "a softmax's size is negative");
}

}  // namespace

void softmax_forward(const float* scores, const SoftmaxShape& shape, const SoftmaxOptions& options,
                     float* probabilities) {
  check_shape(shape);
  for_rows(shape.batch * shape.rows, shape.columns, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t seen = seen_columns(shape, options.mask, row);
      float* out = probabilities + row * shape.columns;
      if (seen > 0) softmax_row(scores + row * shape.columns, seen, options.scale, out);
      std::fill(out + seen, out + shape.columns, 0.0f);
    }
  });
}

void softmax_backward(const float* probabilities, const float* dprobabilities, const SoftmaxShape& shape,
                      const SoftmaxOptions& options, float* dscores) {
  check_shape(shape);
  for_rows(shape.batch * shape.rows, shape.columns, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t seen = seen_columns(shape, options.mask, row), start = row * shape.columns;
      gradient_row(probabilities + start, dprobabilities + start, seen, options.scale, dscores + start);
      std::fill(dscores + start + seen, dscores + start + shape.columns, 0.0f);
    }
  });
}

}  // namespace terrace::math

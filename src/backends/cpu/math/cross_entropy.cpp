// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/math/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "math/labels.hpp"
#include "math/lane.hpp"
#include "math/loops.hpp"

namespace terrace::math {
namespace {

[[gnu::always_inline]] inline float log_sum_exp_of(const float* row, std::int64_t columns) {
  const float most = greatest(row, columns);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < columns; ++c) sum += lane::exp(row[c] - most);
  return most + std::log(sum);
}

[[gnu::always_inline]] inline void gradient_of_row(const float* row, std::int64_t columns, std::int32_t label,
                                                   float log_sum_exp, float scale, float* out) {
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) out[c] = scale * lane::exp(row[c] - log_sum_exp);
  out[label] -= scale;
}

}  // namespace

void cross_entropy_forward(const float* logits, const std::int32_t* labels, Rows shape, float* loss,
                           float* log_sum_exp) {
  const std::int64_t labelled = check_labels(labels, shape);
  for_rows(shape.rows, shape.columns, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      log_sum_exp[r] = log_sum_exp_of(logits + r * shape.columns, shape.columns);
    }
  });
  const double sum = sum_over_ranges(shape.rows, [=](std::int64_t begin, std::int64_t end) {
    double part = 0;
    for (std::int64_t r = begin; r < end; ++r) {
      if (labels[r] != kIgnoredLabel) part += log_sum_exp[r] - logits[r * shape.columns + labels[r]];
    }
    return part;
  });
  *loss = static_cast<float>(sum / static_cast<double>(labelled));
}

void cross_entropy_backward(const float* logits, const std::int32_t* labels, const float* log_sum_exp,
                            const float* upstream, Rows shape, float* dlogits) {
  const float scale = *upstream / static_cast<float>(check_labels(labels, shape));
  for_rows(shape.rows, shape.columns, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      float* out = dlogits + r * shape.columns;
      if (labels[r] == kIgnoredLabel) {
        std::fill_n(out, shape.columns, 0.0f);
      } else {
        gradient_of_row(logits + r * shape.columns, shape.columns, labels[r], log_sum_exp[r], scale, out);
      }
    }
  });
}

}  // namespace terrace::math

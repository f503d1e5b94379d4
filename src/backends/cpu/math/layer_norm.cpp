// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/math/layer_norm.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "math/loops.hpp"

namespace terrace::math {
namespace {

struct Moments {
  float mean, reciprocal_deviation;
};

// Two passes over a row that stays in the nearest cache. The second corrects the rounding of the first mean,
// which matters where the mean is large beside the deviation.
[[gnu::always_inline]] inline Moments moments_of(const float* x, std::int64_t columns, float epsilon) {
  const auto count = static_cast<float>(columns);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < columns; ++c) sum += x[c];
  const float near = sum / count;
  float excess = 0, squares = 0;
#pragma omp simd reduction(+ : excess, squares)
  for (std::int64_t c = 0; c < columns; ++c) {
    excess += x[c] - near;
    squares += (x[c] - near) * (x[c] - near);
  }
  return {near + excess / count, 1 / std::sqrt(squares / count + epsilon)};
}

/// Adds the row's share to dgamma and dbeta and writes its dx.
[[gnu::always_inline]] inline void gradient_row(const float* x, const float* gamma, Moments moments,
                                                const float* dy, std::int64_t columns,
                                                const LayerNormGradients& out) {
  const float mean = moments.mean, reciprocal = moments.reciprocal_deviation;
  float *dx = out.dx, *dgamma = out.dgamma, *dbeta = out.dbeta;
  float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::int64_t c = 0; c < columns; ++c) {
    const float normal = (x[c] - mean) * reciprocal, scaled = dy[c] * gamma[c];
    dgamma[c] += dy[c] * normal;
    dbeta[c] += dy[c];
    sum += scaled;
    product += scaled * normal;
  }
  sum /= static_cast<float>(columns);
  product /= static_cast<float>(columns);
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) {
    const float normal = (x[c] - mean) * reciprocal;
    dx[c] = reciprocal * (dy[c] * gamma[c] - sum - normal * product);
  }
}

/// out[c] = the sum of the `parts` rows of `scratch` that lie `stride` apart.
void add_parts(const float* scratch, std::int64_t parts, std::int64_t stride, std::int64_t columns,
               float* out) {
  for_elements(columns, [=](std::int64_t c) {
    float sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += scratch[part * stride + c];
    out[c] = sum;
  });
}

}  // namespace

void layer_norm_forward(const float* x, const float* gamma, const float* beta, Rows shape, float epsilon,
                        float* y, const LayerNormMoments& moments) {
  check(shape.columns > 0, "layer normalisation needs columns");
  for_rows(shape.rows, shape.columns, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* in = x + r * shape.columns;
      float* out = y + r * shape.columns;
      const Moments found = moments_of(in, shape.columns, epsilon);
      const float mean = found.mean, reciprocal = found.reciprocal_deviation;
#pragma omp simd
      for (std::int64_t c = 0; c < shape.columns; ++c)
        out[c] = (in[c] - mean) * reciprocal * gamma[c] + beta[c];
      moments.mean[r] = mean;
      moments.reciprocal_deviation[r] = reciprocal;
    }
  });
}

void layer_norm_backward(const float* x, const float* gamma, const LayerNormMoments& moments, const float* dy,
                         Rows shape, const LayerNormGradients& gradients) {
  check(shape.rows >= 0 && shape.columns > 0, "layer normalisation needs columns and no negative size");
  const std::int64_t columns = shape.columns, parts = std::min(team_size(), shape.rows);
  std::vector<float> sums(static_cast<std::size_t>(parts * 2 * columns));
  float* const scratch = sums.data();
  for_pieces(parts, [=, chosen = level()](std::int64_t part) {
    float* const own = scratch + part * 2 * columns;
    const auto rows = [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        gradient_row(x + r * columns, gamma, {moments.mean[r], moments.reciprocal_deviation[r]},
                     dy + r * columns, columns, {gradients.dx + r * columns, own, own + columns});
      }
    };
    run_at(chosen, rows, detail::border(shape.rows, part, parts, 1),
           detail::border(shape.rows, part + 1, parts, 1));
  });
  add_parts(scratch, parts, 2 * columns, columns, gradients.dgamma);
  add_parts(scratch + columns, parts, 2 * columns, columns, gradients.dbeta);
}

}  // namespace terrace::math

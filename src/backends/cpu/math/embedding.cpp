// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/math/embedding.hpp"

#include <algorithm>

#include "math/loops.hpp"

namespace terrace::math {
namespace {

void check_indices(const std::int32_t* indices, const EmbeddingShape& shape) {
  check(shape.vocabulary >= 0 && shape.width >= 0 && shape.count >= 0, "an embedding's size is negative");
  check(shape.first >= 0 &&
            (shape.whole == 0 ? shape.first == 0 : shape.first <= shape.whole - shape.vocabulary),
        "a part of an embedding lies within the whole");
  const std::int64_t indexed = shape.whole == 0 ? shape.vocabulary : shape.whole;
  check(std::all_of(indices, indices + shape.count,
                    [&](std::int32_t index) { return index >= 0 && index < indexed; }),
        "an index lies outside the embedding's vocabulary");
}

/// The row of this table that an index means; negative or beyond its end: that of another part.
std::int64_t row_of(std::int32_t index, const EmbeddingShape& shape) { return index - shape.first; }

bool holds(const EmbeddingShape& shape, std::int64_t row) { return row >= 0 && row < shape.vocabulary; }

/// Threads share columns, not rows: every sum keeps its order, and frequent indices slow no one thread down.
void scatter_add(const float* dout, const std::int32_t* indices, const EmbeddingShape& shape, float* dtable) {
  constexpr std::int64_t kLine = 16;  // no two threads write the same cache line
  const std::int64_t lines = (shape.width + kLine - 1) / kLine;
  for_rows(lines, shape.count * kLine, [=](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * kLine, last = std::min(end * kLine, shape.width);
    for (std::int64_t i = 0; i < shape.count; ++i) {
      const std::int64_t row = row_of(indices[i], shape);
      if (!holds(shape, row)) continue;
      const float* from = dout + i * shape.width;
      float* to = dtable + row * shape.width;
#pragma omp simd
      for (std::int64_t column = first; column < last; ++column) to[column] += from[column];
    }
  });
}

}  // namespace

void embedding_forward(const float* table, const std::int32_t* indices, const EmbeddingShape& shape,
                       float* out, OtherRows others) {
  check_indices(indices, shape);
  for_rows(shape.count, shape.width, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = row_of(indices[i], shape);
      float* to = out + i * shape.width;
      if (holds(shape, row)) {
        std::copy_n(table + row * shape.width, shape.width, to);
      } else if (others == OtherRows::cleared) {
        std::fill_n(to, shape.width, 0.0F);
      }
    }
  });
}

void embedding_backward(const float* dout, const std::int32_t* indices, const EmbeddingShape& shape,
                        float* dtable) {
  check_indices(indices, shape);
  for_ranges(shape.vocabulary * shape.width,
             [=](std::int64_t begin, std::int64_t end) { std::fill(dtable + begin, dtable + end, 0.0f); });
  scatter_add(dout, indices, shape, dtable);
}

}  // namespace terrace::math

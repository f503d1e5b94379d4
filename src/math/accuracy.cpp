// SPDX-License-Identifier: Apache-2.0
#include "math/accuracy.hpp"

#include <atomic>

#include "math/labels.hpp"
#include "math/loops.hpp"

namespace terrace::math {
namespace {

[[gnu::always_inline]] inline bool is_first_greatest(const float* row, std::int64_t columns,
                                                     std::int64_t column) {
  const float chosen = row[column];
  const bool above_earlier = column == 0 || chosen > greatest(row, column);
  return above_earlier && chosen >= greatest(row + column + 1, columns - column - 1);
}

}  // namespace

std::int64_t count_correct(const float* logits, const std::int32_t* labels, Rows shape) {
  check_labels(labels, shape);
  std::atomic<std::int64_t> correct = 0;
  for_rows(shape.rows, shape.columns, [=, &correct](std::int64_t begin, std::int64_t end) {
    std::int64_t found = 0;
    for (std::int64_t r = begin; r < end; ++r) {
      if (labels[r] == kIgnoredLabel) continue;
      found += is_first_greatest(logits + r * shape.columns, shape.columns, labels[r]);
    }
    correct += found;
  });
  return correct;
}

}  // namespace terrace::math

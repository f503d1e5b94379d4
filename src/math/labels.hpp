// SPDX-License-Identifier: Apache-2.0
// What every kernel that reads labels makes sure of first.
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "math/shape.hpp"

namespace terrace::math {

/// Returns how many rows have a label. Throws logic_error where a label is neither a column nor
/// kIgnoredLabel.
inline std::int64_t check_labels(const std::int32_t* labels, Rows shape) {
  check(shape.rows >= 0 && shape.columns >= 0, "a number of rows or columns is negative");
  std::int64_t labelled = 0, ignored = 0;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    labelled += labels[r] >= 0 && labels[r] < shape.columns;
    ignored += labels[r] == kIgnoredLabel;
  }
  check(labelled + ignored == shape.rows, "a label is neither a column nor the ignored label");
  return labelled;
}

}  // namespace terrace::math

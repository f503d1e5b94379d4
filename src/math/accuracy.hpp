// SPDX-License-Identifier: Apache-2.0
// How often the largest logit of a row is the labelled one. Thread-safe.
#pragma once

#include <cstdint>

#include "math/shape.hpp"

namespace terrace::math {

/// The number of rows whose greatest logit, the first of equal ones, stands in the labelled column. Rows with
/// kIgnoredLabel do not count, nor do those whose labelled logit is NaN; any other label that is no column
/// throws logic_error.
std::int64_t count_correct(const float* logits, const std::int32_t* labels, Rows shape);

}  // namespace terrace::math

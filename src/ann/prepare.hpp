// SPDX-License-Identifier: Apache-2.0
// What vectors must be before they are compared, and their form for a metric. Plain functions.
#pragma once

#include <string_view>

#include "terrace/ann.hpp"

namespace terrace::ann {

/// Refuses with a sentence what has no distance: a dimension of zero or too large, values that are not whole
/// rows, what is no finite number, and vectors so long that a distance would be no float. `what` names them
/// in the sentence: "vector", "query".
Result<void> check_vectors(const Vectors& vectors, Metric metric, std::string_view what);

/// Scales each to length one for cosine (a zero vector stays zero); nothing for other metrics.
void normalise(std::span<float> values, std::size_t dimension, Metric metric);

}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
// Dropout without a stored mask: which elements are kept follows from the key.
#pragma once

#include <cstdint>

#include "math/random.hpp"

namespace terrace::math {

/// y[i] = x[i] / (1 - share) where element i is kept, else 0. Each is dropped with probability `share`, in
/// steps of 2^-24. The gradient is the same function of dy with the same key. y may be x. pre: 0 <= share < 1
void dropout(const float* x, float* y, std::int64_t n, float share, const RandomKey& key);

}  // namespace terrace::math

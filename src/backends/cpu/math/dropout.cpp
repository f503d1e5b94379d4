// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/math/dropout.hpp"

#include <cmath>

#include "math/random_group.hpp"

namespace terrace::math {

void dropout(const float* x, float* y, std::int64_t n, float share, const RandomKey& key) {
  check(share >= 0 && share < 1, "dropout needs a share of at least zero and below one");
  const auto least_kept = static_cast<std::int32_t>(std::lround(share / kUpperBitStep));
  const float gain = 1 / (1 - share);
  for_ranges(n, [=](std::int64_t begin, std::int64_t end) {
    for_groups(key, begin, end, [=](const RandomGroup& words, std::int64_t first, std::int64_t count) {
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) {
        y[first + i] = upper_bits(words[i]) >= least_kept ? x[first + i] * gain : 0;
      }
    });
  });
}

}  // namespace terrace::math

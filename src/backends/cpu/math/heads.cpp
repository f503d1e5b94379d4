// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/math/heads.hpp"

#include <algorithm>

#include "math/loops.hpp"

namespace terrace::math {
namespace {

/// Calls copy(part, offset in the part, offset in x) for every run of `width` elements, in the order of x.
template <class Copy>
void for_runs(const HeadsShape& shape, std::int64_t parts, Copy copy) {
  const std::int64_t sequence = shape.sequence, heads = shape.heads, width = shape.width;
  check(shape.batch >= 0 && sequence >= 0 && heads >= 0 && width >= 0,
        "a size of attention heads is negative");
  for_rows(shape.batch * sequence, parts * heads * width, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t b = row / sequence, s = row % sequence;
      std::int64_t at = row * parts * heads * width;
      for (std::int64_t part = 0; part < parts; ++part) {
        for (std::int64_t h = 0; h < heads; ++h, at += width) {
          copy(part, ((b * heads + h) * sequence + s) * width, at);
        }
      }
    }
  });
}

}  // namespace

void split_heads(const float* x, const HeadsShape& shape, std::span<float* const> parts) {
  for_runs(shape, std::ssize(parts), [=](std::int64_t part, std::int64_t to, std::int64_t from) {
    std::copy_n(x + from, shape.width, parts[part] + to);
  });
}

void merge_heads(std::span<const float* const> parts, const HeadsShape& shape, float* x) {
  for_runs(shape, std::ssize(parts), [=](std::int64_t part, std::int64_t from, std::int64_t to) {
    std::copy_n(parts[part] + from, shape.width, x + to);
  });
}

}  // namespace terrace::math

// Between the layout of a projection, [batch, sequence, parts x heads x width], and that of attention,
// [batch, heads, sequence, width] for each part (queries, keys and values, say). Copies; thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace terrace::math {

struct HeadsShape {
  std::int64_t batch = 0, sequence = 0, heads = 0, width = 0;
};

/// parts[p][b, h, s, d] = x[b, s, p, h, d]. The parts do not overlap x or each other.
void split_heads(const float* x, const HeadsShape& shape, std::span<float* const> parts);

/// x[b, s, p, h, d] = parts[p][b, h, s, d]. The parts do not overlap x.
void merge_heads(std::span<const float* const> parts, const HeadsShape& shape, float* x);

}  // namespace terrace::math

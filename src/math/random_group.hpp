// SPDX-License-Identifier: Apache-2.0
// The random words of one group of elements, made side by side in vectors. For use inside kernels' loops.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "math/loops.hpp"
#include "math/random.hpp"

namespace terrace::math {

struct PhiloxBlock {
  std::uint32_t a, b, c, d;
};

[[gnu::always_inline]] inline PhiloxBlock philox_block(PhiloxBlock x, std::uint32_t key0,
                                                       std::uint32_t key1) {
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * x.a, second = std::uint64_t{0xCD9E8D57} * x.c;
    x = {static_cast<std::uint32_t>(second >> 32) ^ x.b ^ key0, static_cast<std::uint32_t>(second),
         static_cast<std::uint32_t>(first >> 32) ^ x.d ^ key1, static_cast<std::uint32_t>(first)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return x;
}

/// A group is kUnit elements; its blocks stand side by side, one per lane, and give four rows of words.
inline constexpr std::int64_t kLanes = kUnit / 4;

/// The block that makes lane `lane` of group `group`.
[[gnu::always_inline]] inline PhiloxBlock lane_block(const RandomKey& key, std::int64_t group,
                                                     std::int64_t lane) {
  const auto block = static_cast<std::uint64_t>(group * kLanes + lane);
  return philox_block(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), key.step, key.stream},
      static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32));
}

using RandomGroup = std::array<std::uint32_t, kUnit>;

[[gnu::always_inline]] inline void make_group(const RandomKey& key, std::int64_t group, RandomGroup& words) {
#pragma omp simd
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    const PhiloxBlock block = lane_block(key, group, lane);
    words[lane] = block.a;
    words[kLanes + lane] = block.b;
    words[2 * kLanes + lane] = block.c;
    words[3 * kLanes + lane] = block.d;
  }
}

/// Calls body(words, first, count) for each group of [begin, end): its elements are first ... first + count
/// - 1, counted from group `origin` on. pre: begin is a multiple of kUnit
template <class Body>
void for_groups(const RandomKey& key, std::int64_t begin, std::int64_t end, Body body,
                std::int64_t origin = 0) {
  RandomGroup words;
  for (std::int64_t first = begin; first < end; first += kUnit) {
    make_group(key, origin + first / kUnit, words);
    body(words, first, std::min(kUnit, end - first));
  }
}

/// The upper bits of a word, as many as a float holds. A signed number, for which every level has
/// instructions.
[[gnu::always_inline]] inline std::int32_t upper_bits(std::uint32_t word) {
  return static_cast<std::int32_t>(word >> 8);
}
inline constexpr float kUpperBitStep = 0x1p-24f;

}  // namespace terrace::math

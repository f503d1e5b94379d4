// SPDX-License-Identifier: Apache-2.0
#include "math/random.hpp"

#include <cmath>

#include "math/lane.hpp"
#include "math/random_group.hpp"

namespace terrace::math {
namespace {

using NormalGroup = std::array<float, kUnit>;

// Box and Muller: two uniform numbers make two independent normal ones.
[[gnu::always_inline]] inline void make_normals(const RandomGroup& words, NormalGroup& normals) {
  for (std::int64_t row = 0; row < kUnit; row += 2 * kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const std::int64_t first = row + lane, second = first + kLanes;
      // Never zero, which has no logarithm.
      const float share = static_cast<float>(upper_bits(words[first]) + 1) * kUpperBitStep;
      const float turns = static_cast<float>(upper_bits(words[second])) * kUpperBitStep;
      const float radius = std::sqrt(-2 * lane::log(share));
      const lane::SinCos direction = lane::sin_cos(turns);
      normals[first] = radius * direction.cos;
      normals[second] = radius * direction.sin;
    }
  }
}

/// Calls body(words, i, to, count) for stretches that make up elements begin ... begin + n - 1: words[i] and
/// its neighbours are of what goes to place `to` and after it.
template <class Body>
void for_elements_from(const RandomKey& key, std::int64_t begin, std::int64_t n, Body body) {
  check(begin >= 0 && n >= 0, "the index of a random element is negative");
  // Groups are made whole: those before `begin` in the first one are left out.
  const std::int64_t origin = begin / kUnit, skipped = begin % kUnit;
  for_ranges(n == 0 ? 0 : skipped + n, [=](std::int64_t from, std::int64_t end) {
    const auto group = [=](const RandomGroup& words, std::int64_t first, std::int64_t count) {
      const std::int64_t left_out = first < skipped ? skipped - first : 0;
      body(words, left_out, first + left_out - skipped, count - left_out);
    };
    for_groups(key, from, end, group, origin);
  });
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  const auto [a, b, c, d] = philox_block({counter[0], counter[1], counter[2], counter[3]}, key[0], key[1]);
  return {a, b, c, d};
}

std::uint32_t random_word(const RandomKey& key, std::int64_t index) {
  check(index >= 0, "the index of a random element is negative");
  const auto [a, b, c, d] = lane_block(key, index / kUnit, index % kLanes);
  return std::array{a, b, c, d}[static_cast<std::size_t>(index % kUnit / kLanes)];
}

void fill_uniform(float* out, std::int64_t n, float low, float high, const RandomKey& key,
                  std::int64_t begin) {
  check(low < high, "a uniform distribution needs low < high");
  const float step = (high - low) * kUpperBitStep;
  const float most = std::nextafter(high, low);  // rounding must not reach the open end
  for_elements_from(key, begin, n,
                    [=](const RandomGroup& words, std::int64_t first, std::int64_t to, std::int64_t count) {
#pragma omp simd
                      for (std::int64_t i = 0; i < count; ++i) {
                        const float value = low + step * static_cast<float>(upper_bits(words[first + i]));
                        out[to + i] = value < most ? value : most;
                      }
                    });
}

void fill_normal(float* out, std::int64_t n, float mean, float deviation, const RandomKey& key,
                 std::int64_t begin) {
  check(deviation >= 0, "a normal distribution needs a deviation of at least zero");
  for_elements_from(key, begin, n,
                    [=](const RandomGroup& words, std::int64_t first, std::int64_t to, std::int64_t count) {
                      NormalGroup normals;
                      make_normals(words, normals);
#pragma omp simd
                      for (std::int64_t i = 0; i < count; ++i)
                        out[to + i] = mean + deviation * normals[first + i];
                    });
}

void fill_integers(std::int32_t* out, std::int64_t n, std::int32_t bound, const RandomKey& key) {
  check(bound > 0, "random integers need a bound above zero");
  for_ranges(n, [=](std::int64_t begin, std::int64_t end) {
    for_groups(key, begin, end, [=](const RandomGroup& words, std::int64_t first, std::int64_t count) {
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) {
        out[first + i] =
            static_cast<std::int32_t>(std::uint64_t{words[i]} * static_cast<std::uint32_t>(bound) >> 32);
      }
    });
  });
}

}  // namespace terrace::math

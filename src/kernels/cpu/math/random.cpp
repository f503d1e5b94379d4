#include "kernels/cpu/math/random.hpp"

#include <cmath>

#include "kernels/cpu/math/lane.hpp"
#include "kernels/cpu/math/random_group.hpp"

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

void fill_uniform(float* out, std::int64_t n, float low, float high, const RandomKey& key) {
  check(low < high, "a uniform distribution needs low < high");
  const float step = (high - low) * kUpperBitStep;
  const float most = std::nextafter(high, low);  // rounding must not reach the open end
  for_ranges(n, [=](std::int64_t begin, std::int64_t end) {
    for_groups(key, begin, end, [=](const RandomGroup& words, std::int64_t first, std::int64_t count) {
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) {
        const float value = low + step * static_cast<float>(upper_bits(words[i]));
        out[first + i] = value < most ? value : most;
      }
    });
  });
}

void fill_normal(float* out, std::int64_t n, float mean, float deviation, const RandomKey& key) {
  check(deviation >= 0, "a normal distribution needs a deviation of at least zero");
  for_ranges(n, [=](std::int64_t begin, std::int64_t end) {
    for_groups(key, begin, end, [=](const RandomGroup& words, std::int64_t first, std::int64_t count) {
      NormalGroup normals;
      make_normals(words, normals);
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) out[first + i] = mean + deviation * normals[i];
    });
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

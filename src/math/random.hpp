// SPDX-License-Identifier: Apache-2.0
// Random numbers that are functions of (key, element index) and of nothing else: no state, so any element can
// be made again, by any thread, in any order, and nothing about them needs to be stored.
//
// The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
// keyed by the seed, with step and stream in the upper half of the counter. Blocks of four words are spread
// over groups of kUnit elements such that neighbouring elements come from neighbouring blocks, which suits
// vectors. Thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace terrace::math {

/// Different keys give independent sequences.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;    ///< of training, say
  std::uint32_t stream = 0;  ///< tells users of the same step apart
};

/// The bijection itself.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// The 32 random bits of element `index`, on which everything below is built. pre: index >= 0
std::uint32_t random_word(const RandomKey& key, std::int64_t index);

/// out[i] is element `begin` + i: uniform in [low, high), in steps of 2^-24 of that span. pre: low < high,
/// begin >= 0
void fill_uniform(float* out, std::int64_t n, float low, float high, const RandomKey& key,
                  std::int64_t begin = 0);

/// out[i] is element `begin` + i: normally distributed. pre: deviation >= 0, begin >= 0
void fill_normal(float* out, std::int64_t n, float mean, float deviation, const RandomKey& key,
                 std::int64_t begin = 0);

/// out[i] is uniform in [0, bound); numbers differ in probability by less than 2^-32. pre: bound > 0
void fill_integers(std::int32_t* out, std::int64_t n, std::int32_t bound, const RandomKey& key);

}  // namespace terrace::math

// SPDX-License-Identifier: Apache-2.0
// Distances between two vectors, for the best instruction set that the processor has. Levels add in different
// orders, so their results agree to rounding; one level gives the same bits every time. Thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "terrace/ann.hpp"

namespace terrace::ann {

enum class Level : std::uint8_t { scalar, avx2, avx512 };

/// The highest level this processor has.
Level best_level();

/// Of `dimension` floats each; neither pointer needs any alignment.
using DistanceFunction = float (*)(const float* a, const float* b, std::size_t dimension);

/// For cosine the vectors are of length one or zero (prepare.hpp). pre: level <= best_level()
DistanceFunction distance_function(Metric metric, Level level = best_level());

/// The oracle: the same in double precision, of vectors as the user gave them.
double exact_distance(Metric metric, std::span<const float> a, std::span<const float> b);

}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
// Vectors for tests: small, seeded, of known shape.
#pragma once

#include <initializer_list>

#include "ann/generate.hpp"

namespace terrace::ann {

inline Vectors rows(std::initializer_list<std::initializer_list<float>> lists) {
  Vectors vectors;
  for (const auto& list : lists) {
    vectors.dimension = list.size();
    vectors.values.insert(vectors.values.end(), list.begin(), list.end());
  }
  return vectors;
}

inline Mixture mixture(std::size_t count, std::size_t dimension, double hubs = 0) {
  Mixture made;
  made.count = count;
  made.dimension = dimension;
  made.clusters = 20;
  made.intrinsic = dimension < 8 ? dimension : 8;
  made.hubs = hubs;
  made.seed = 7;
  return made;
}

/// For a few thousand vectors of 24 dimensions, of which fast memory holds less than half.
inline BuildOptions small_build(std::uint32_t code_bytes = 0) {
  BuildOptions options;
  options.links = 8;
  options.ef_construction = 60;
  options.fast = Bytes{250'000};
  options.code_bytes = code_bytes;
  return options;
}

}  // namespace terrace::ann

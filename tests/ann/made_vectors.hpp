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

}  // namespace terrace::ann

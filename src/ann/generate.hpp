// SPDX-License-Identifier: Apache-2.0
// Made-up vectors whose difficulty is set: a mixture of clusters, each a flat piece of a few dimensions in
// the full space, some of them far more common than others. The same numbers from the same seed everywhere.
#pragma once

#include <cstdint>

#include "terrace/ann.hpp"

namespace terrace::ann {

struct Mixture {
  std::size_t count = 0;
  std::size_t dimension = 128;
  std::size_t clusters = 100;
  std::size_t intrinsic = 16;  ///< dimensions that a cluster extends in
  double skew = 0;             ///< cluster number c (from 1) is chosen in proportion to c to the power -skew
  /// Vectors are drawn toward their cluster's centre by this power: above zero there are hubs, which many
  /// others have among their nearest.
  double hubs = 0;
  std::uint64_t seed = 1;
};

/// `part` draws other vectors of the same clusters: 0 for vectors, 1 for queries.
/// pre: count, dimension, clusters and intrinsic are above zero, intrinsic at most dimension
Vectors generate(const Mixture& mixture, std::uint64_t part = 0);

}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
#include "ann/generate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.hpp"
#include "base/random.hpp"

namespace terrace::ann {
namespace {

/// Between 0 and 1, neither of them.
double share(SplitMix& random) { return (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53; }

double normal(SplitMix& random) {
  const double radius = std::sqrt(-2 * std::log(share(random)));
  return radius * std::cos(2 * std::numbers::pi * share(random));
}

struct Cluster {
  std::vector<float> centre;
  std::vector<float> axes;  ///< intrinsic rows
};

Cluster make_cluster(const Mixture& mixture, std::size_t number) {
  SplitMix random(mixture.seed * 0x9E3779B9 + number + 1);
  Cluster cluster;
  for (std::size_t i = 0; i < mixture.dimension; ++i)
    cluster.centre.push_back(static_cast<float>(normal(random)));
  // Axes of the length that makes a cluster about as wide as centres are apart, so that clusters overlap.
  const double length = 1 / std::sqrt(static_cast<double>(mixture.intrinsic));
  for (std::size_t i = 0; i < mixture.intrinsic * mixture.dimension; ++i)
    cluster.axes.push_back(static_cast<float>(length * normal(random)));
  return cluster;
}

/// Of each cluster, the share of vectors in it and those before it.
std::vector<double> cumulative_shares(const Mixture& mixture) {
  std::vector<double> shares;
  double sum = 0;
  for (std::size_t i = 0; i < mixture.clusters; ++i)
    shares.push_back(sum += std::pow(static_cast<double>(i + 1), -mixture.skew));
  for (double& one : shares) one /= sum;
  return shares;
}

}  // namespace

Vectors generate(const Mixture& mixture, std::uint64_t part) {
  check(mixture.count > 0 && mixture.dimension > 0 && mixture.clusters > 0, "a mixture has something in it");
  check(mixture.intrinsic > 0 && mixture.intrinsic <= mixture.dimension,
        "a cluster has some of the dimensions of its space");
  std::vector<Cluster> clusters;
  for (std::size_t i = 0; i < mixture.clusters; ++i) clusters.push_back(make_cluster(mixture, i));
  const auto shares = cumulative_shares(mixture);
  SplitMix random(mixture.seed ^ (0xA5A5A5A5ULL + part * 0x1000193));
  Vectors vectors;
  vectors.dimension = mixture.dimension;
  vectors.values.reserve(mixture.count * mixture.dimension);
  for (std::size_t row = 0; row < mixture.count; ++row) {
    const auto chosen = std::upper_bound(shares.begin(), shares.end() - 1, share(random)) - shares.begin();
    const Cluster& cluster = clusters[static_cast<std::size_t>(chosen)];
    std::vector<float> vector = cluster.centre;
    const double reach = std::pow(share(random), mixture.hubs);
    for (std::size_t axis = 0; axis < mixture.intrinsic; ++axis) {
      const auto weight = static_cast<float>(reach * normal(random));
      const float* direction = cluster.axes.data() + axis * mixture.dimension;
      for (std::size_t i = 0; i < mixture.dimension; ++i) vector[i] += weight * direction[i];
    }
    vectors.values.insert(vectors.values.end(), vector.begin(), vector.end());
  }
  return vectors;
}

}  // namespace terrace::ann

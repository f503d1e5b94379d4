// SPDX-License-Identifier: Apache-2.0
#include "ann/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ann/metric.hpp"
#include "ann/prepare.hpp"
#include "base/check.hpp"
#include "base/random.hpp"

namespace terrace::ann {
namespace {

using namespace literals;

/// What is kept for every row while shards are planned and joined: hashes, numbers, degrees.
constexpr Bytes kForEachRow{24}, kForAnything = 8_MiB;
/// Room for rows that belong to two shards, and for shards that fill unevenly.
constexpr double kRoom = 1.8;
/// A row joins a second shard whose centre is at most so much farther, in squared distance.
constexpr float kBetween = 1.5F;
constexpr std::uint64_t kSample = 20'000, kMostShards = 500;
/// An insertion meets its shard at random, and takes a third of the time where the processor caches it.
constexpr Bytes kCachedShard = 32_MiB;
/// Of a row's shards in the order of their distance, as many as are nearly always enough.
constexpr std::size_t kNearest = 8;
constexpr int kIterations = 10;

class Centres {
 public:
  Centres(std::size_t count, std::size_t dimension)
      : count_(count),
        dimension_(dimension),
        values_(count * dimension),
        l2_(distance_function(Metric::l2)) {}

  float* operator[](std::size_t centre) { return values_.data() + centre * dimension_; }
  float distance(std::size_t centre, const float* row) const {
    return l2_(values_.data() + centre * dimension_, row, dimension_);
  }
  std::size_t nearest(const float* row) const {
    std::size_t best = 0;
    float least = distance(0, row);
    for (std::size_t centre = 1; centre < count_; ++centre) {
      if (const float here = distance(centre, row); here < least) least = here, best = centre;
    }
    return best;
  }

  /// One step of k-means.
  void improve(const std::vector<float>& sample) {
    std::vector<double> sums(values_.size());
    std::vector<std::uint64_t> counts(count_);
    for (std::size_t at = 0; at < sample.size(); at += dimension_) {
      const std::size_t centre = nearest(sample.data() + at);
      ++counts[centre];
      for (std::size_t i = 0; i < dimension_; ++i) sums[centre * dimension_ + i] += double{sample[at + i]};
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (const std::uint64_t count = counts[i / dimension_]; count > 0)
        values_[i] = static_cast<float>(sums[i] / static_cast<double>(count));
    }
  }

 private:
  const std::size_t count_, dimension_;
  std::vector<float> values_;
  const DistanceFunction l2_;
};

Centres find_centres(const VectorSource& source, Metric metric, std::size_t count, std::uint64_t seed) {
  const std::size_t dimension = source.dimension();
  SplitMix random(seed ^ 0x5AAD);
  std::vector<float> sample(std::min(source.count(), kSample) * dimension);
  for (std::size_t at = 0; at < sample.size(); at += dimension)
    source.read(random.below(source.count()), sample.data() + at);
  normalise(sample, dimension, metric);
  Centres centres(count, dimension);
  for (std::size_t i = 0; i < count; ++i) {
    const float* row = sample.data() + i % (sample.size() / dimension) * dimension;
    std::copy(row, row + dimension, centres[i]);
  }
  for (int i = 0; i < kIterations; ++i) centres.improve(sample);
  return centres;
}

}  // namespace

Bytes shard_row_bytes(std::size_t dimension, std::uint32_t links) {
  // The vector; in the lowest layer a link with its distance and once more without; a share of the layers
  // above; its number, its row, its order and its mark.
  return Bytes{dimension * sizeof(float) + 2 * links * 12ULL + 2 * 12ULL + 24};
}

Result<ShardPlan> plan_shards(std::uint64_t rows, std::size_t dimension, const BuildOptions& options,
                              Bytes memory) {
  const Bytes kept = (kForEachRow + Bytes{options.code_bytes}) * rows + kForAnything;
  const Bytes each = shard_row_bytes(dimension, options.links) * options.builders;
  // A shard of fewer rows than links would join nothing.
  const std::uint64_t least = std::max<std::uint64_t>(
      4 * options.links, static_cast<std::uint64_t>(kRoom * static_cast<double>(rows) / kMostShards) + 1);
  if (memory < kept + each * least)
    return Error{ErrorCode::too_large,
                 fmt::format("{} vectors of {} dimensions cannot be built in {}: give it at least {}", rows,
                             dimension, readable(memory), readable(kept + each * least))};
  ShardPlan plan;
  plan.rows_in_memory = (memory - kept) / each;
  plan.most_rows = plan.rows_in_memory;
  if (rows > plan.most_rows)
    plan.most_rows =
        std::min(plan.most_rows,
                 std::max<std::uint64_t>(least, kCachedShard / shard_row_bytes(dimension, options.links)));
  const Bytes vector{dimension * sizeof(float)};
  const Bytes graphs = (each - vector * options.builders) * plan.most_rows;
  plan.loaded_rows = (memory - kept - graphs) / vector;
  if (rows <= plan.most_rows)
    plan.shards = 1;
  else
    plan.shards =
        static_cast<std::uint32_t>(kRoom * static_cast<double>(rows) / static_cast<double>(plan.most_rows)) +
        1;
  return plan;
}

std::vector<Membership> assign_rows(const VectorSource& source, Metric metric, const ShardPlan& plan,
                                    const std::vector<bool>& left_out, std::uint64_t seed) {
  const std::size_t dimension = source.dimension();
  const Centres centres = find_centres(source, metric, plan.shards, seed);
  std::vector<Membership> all(source.count());
  std::vector<std::uint64_t> held(plan.shards);
  std::vector<float> row(dimension), distances(plan.shards);
  std::vector<std::uint16_t> order(plan.shards);
  // Second memberships leave room for the first one of every row.
  std::uint64_t spare = plan.most_rows * plan.shards - source.count();
  const auto nearer = [&](std::uint16_t a, std::uint16_t b) {
    return distances[a] < distances[b] || (distances[a] == distances[b] && a < b);
  };
  std::size_t sorted = 0;  // places of `order` that are in order
  // The first that has room, from `at` on.
  const auto with_room = [&](std::size_t at) {
    for (;; ++at) {
      if (at == sorted && sorted < order.size()) {
        std::sort(order.begin() + static_cast<std::ptrdiff_t>(sorted), order.end(), nearer);
        sorted = order.size();
      }
      if (at == order.size() || held[order[at]] < plan.most_rows) return at;
    }
  };
  source.read_all([&](std::uint64_t first, std::span<const float> values) {
    for (std::uint64_t i = first; i < first + values.size() / dimension; ++i) {
      if (left_out[i]) continue;
      const auto from = values.subspan((i - first) * dimension, dimension);
      std::copy(from.begin(), from.end(), row.begin());
      normalise(row, dimension, metric);
      for (std::size_t c = 0; c < distances.size(); ++c) distances[c] = centres.distance(c, row.data());
      std::iota(order.begin(), order.end(), std::uint16_t{0});
      sorted = std::min(kNearest, order.size());
      std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(sorted), order.end(),
                        nearer);
      const std::size_t one = with_room(0);
      check(one < order.size(), "the plan has room for all rows");
      all[i].primary = order[one];
      ++held[order[one]];
      const std::size_t two = with_room(one + 1);
      if (spare == 0 || two == order.size() || distances[order[two]] > kBetween * distances[order[one]])
        continue;
      all[i].second = order[two];
      ++held[order[two]];
      --spare;
    }
  });
  return all;
}

}  // namespace terrace::ann

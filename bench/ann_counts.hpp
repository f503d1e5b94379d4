// SPDX-License-Identifier: Apache-2.0
// What a search does, counted: no clock and no load of this computer matters to it.
#pragma once

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>

#include "ann/codes.hpp"
#include "ann_memory.hpp"

namespace terrace::bench {

/// Of one query, on average.
struct Counted {
  ann::SearchOptions options;
  double recall = 0;
  double fast = 0, slow = 0, guesses = 0;  ///< distances
  double longest_share = 0;                ///< of the slow ones, where the search has several shares
  double slow_hops = 0;
  double reads = 0, rounds = 0;  ///< of a disk

  double distances() const { return fast + slow; }
  /// On the paper's machine, where a guess takes the share of a distance in fast memory that it takes here.
  Seconds on_optane(double guess_share) const {
    return ann::kOptaneTimes.predict(fast + guesses * guess_share, slow);
  }
  /// With a thread for each share, as the paper's has four (002 section 3.3.2).
  Seconds in_parallel(double guess_share) const {
    return ann::kOptaneTimes.predict(fast + guesses * guess_share, longest_share);
  }
};

inline Counted count_search(const AnnData& data, const ann::Index& index, const ann::SearchOptions& options,
                            std::size_t k = kNeighbours) {
  const auto before = index.statistics();
  const auto found = index.search(data.queries, k, options).value();
  const auto after = index.statistics();
  const auto mean = [&](std::uint64_t ann::SearchStatistics::*field) {
    return static_cast<double>(after.*field - before.*field) / static_cast<double>(data.queries.count());
  };
  using All = ann::SearchStatistics;
  return {options,
          data.recall_of(found, k),
          mean(&All::fast_distances),
          mean(&All::slow_distances),
          mean(&All::guesses),
          mean(&All::longest_share),
          mean(&All::slow_hops),
          mean(&All::reads),
          mean(&All::rounds)};
}

/// Seconds of processor time, which other programs hardly change.
inline double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Time of a guess over that of a distance, both to vectors all over memory, as a search meets them.
inline double guess_share(const AnnData& data, std::size_t code_bytes) {
  const std::size_t count = data.vectors.count(), dimension = data.vectors.dimension, tries = 200'000;
  const auto distance = ann::distance_function(ann::Metric::l2);
  const std::vector<float> table(code_bytes * ann::Codebook::kCentres, 1.0F);
  std::vector<std::uint8_t> codes(count * code_bytes);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 2654435761U >> 16);
  const auto time = [&](auto&& work) {
    std::vector<double> all;
    for (int round = 0; round < 5; ++round) {
      volatile float sum = 0;
      const double began = processor_seconds();
      for (std::size_t i = 0; i < tries; ++i) sum = sum + work(i * 2654435761U % count);
      all.push_back(processor_seconds() - began);
    }
    return median(all);
  };
  const double guesses = time([&](std::size_t row) {
    return ann::Codebook::guess(table, codes.data() + row * code_bytes, code_bytes);
  });
  const double distances = time([&](std::size_t row) {
    return distance(data.queries.values.data(), data.vectors.values.data() + row * dimension, dimension);
  });
  return std::min(1.0, guesses / distances);
}

/// The setting of least cost that reaches the recall, if one does, of so many entry points each. `count`
/// tells what a setting does; `cost` grows with ef0.
template <class Count, class Cost>
std::optional<Counted> cheapest(Count count, double wanted, Cost cost,
                                std::initializer_list<std::uint32_t> entries, std::uint32_t beam = 1) {
  std::optional<Counted> best;
  for (const std::uint32_t ef1 : entries) {
    for (const std::uint32_t ef0 : kLadder) {
      const Counted one = count(ann::SearchOptions{.ef1 = ef1, .ef0 = ef0, .beam = beam, .ahead = beam});
      if (best && cost(one) >= cost(*best)) break;
      if (one.recall < wanted) continue;
      best = one;
      break;
    }
  }
  return best;
}

/// Settings in the order of what they look at, each a point of recall and cost.
using Curve = std::vector<Counted>;
/// As many of them as it takes to reach every recall that is asked for.
constexpr double kHighestRecall = 0.995;

/// Counts the settings in turn until one reaches the highest recall.
template <class Settings, class Make>
Curve count_curve(const AnnData& data, const ann::Index& index, const Settings& settings, Make make,
                  std::size_t k = kNeighbours) {
  Curve curve;
  for (const std::uint32_t ef : settings) {
    curve.push_back(count_search(data, index, make(ef), k));
    if (curve.back().recall >= kHighestRecall) break;
  }
  return curve;
}

/// What reaching a recall takes, between the last point below it and the first that has it; none where no
/// point does.
inline std::optional<Counted> at_recall(const Curve& curve, double wanted) {
  const auto next =
      std::find_if(curve.begin(), curve.end(), [&](const Counted& one) { return one.recall >= wanted; });
  if (next == curve.end()) return std::nullopt;
  if (next == curve.begin()) return *next;
  const Counted &below = *(next - 1), &above = *next;
  const double share = (wanted - below.recall) / (above.recall - below.recall);
  const auto mix = [&](double Counted::*field) {
    return below.*field + share * (above.*field - below.*field);
  };
  Counted one = above;
  one.recall = wanted;
  for (const auto field :
       {&Counted::fast, &Counted::slow, &Counted::guesses, &Counted::longest_share, &Counted::slow_hops})
    one.*field = mix(field);
  return one;
}

/// The cheapest of several curves at a recall.
template <class Cost>
std::optional<Counted> cheapest_at(const std::vector<Curve>& curves, double wanted, Cost cost) {
  std::optional<Counted> best;
  for (const Curve& curve : curves) {
    const auto one = at_recall(curve, wanted);
    if (one && (!best || cost(*one) < cost(*best))) best = one;
  }
  return best;
}

/// For each number of entry points a curve along ef0.
inline std::vector<Curve> count_grid(const AnnData& data, const ann::Index& index, std::uint32_t shares = 1) {
  std::vector<Curve> curves;
  for (const std::uint32_t ef1 : {1U, 4U, 8U, 16U, 24U, 32U, 48U, 64U, 96U, 128U, 192U}) {
    curves.push_back(count_curve(
        data, index, std::to_array({10U, 14U, 20U, 28U, 40U, 56U, 80U, 112U, 160U, 256U, 400U}),
        [&](std::uint32_t ef0) { return ann::SearchOptions{.ef1 = ef1, .ef0 = ef0, .shares = shares}; }));
  }
  return curves;
}

}  // namespace terrace::bench

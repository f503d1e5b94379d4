// SPDX-License-Identifier: Apache-2.0
// Choosing how far a search looks, for a latency and a recall (002 section 3.3.3).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ann/index.hpp"
#include "base/check.hpp"

namespace terrace::ann {
namespace {

constexpr std::uint32_t kEf1[] = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
constexpr std::uint32_t kEf0[] = {0, 1, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512};
/// A wide beam reads more in fewer rounds: on a disk it pays, in memory it only looks at more.
constexpr std::uint32_t kDiskBeams[] = {4, 8, 24}, kMemoryBeam = 1;
/// Queries whose work is counted for each setting, and with which reference searches are timed.
constexpr std::size_t kCounted = 50, kTimed = 200;

struct Setting {
  SearchOptions options;
  Seconds predicted{0};
  WorkTimes times;
};

Vectors first_of(const Vectors& queries, std::size_t most) {
  const std::size_t count = std::min(queries.count(), most);
  return {queries.dimension,
          {queries.values.begin(),
           queries.values.begin() + static_cast<std::ptrdiff_t>(count * queries.dimension)}};
}

struct Work {
  double fast = 0, slow = 0;  ///< distances of a query
};

Work count_work(const Index& index, const Vectors& queries, std::size_t k, const SearchOptions& options) {
  const SearchStatistics before = index.statistics();
  (void)index.search(queries, k, options).value();
  const SearchStatistics after = index.statistics();
  const auto count = static_cast<double>(queries.count());
  return {static_cast<double>(after.fast_distances - before.fast_distances) / count,
          static_cast<double>(after.slow_distances - before.slow_distances) / count};
}

/// The median of a few, of one query.
Seconds time_of(const Index& index, const Vectors& queries, std::size_t k, const SearchOptions& options) {
  std::vector<Seconds> times;
  for (int i = 0; i < 5; ++i) {
    const auto began = std::chrono::steady_clock::now();
    (void)index.search(queries, k, options).value();
    times.push_back(Seconds(std::chrono::steady_clock::now() - began) / static_cast<double>(queries.count()));
  }
  std::nth_element(times.begin(), times.begin() + 2, times.end());
  return times[2];
}

SearchOptions options_for(const TuneGoal& goal, std::uint32_t ef1, std::uint32_t ef0) {
  return {.ef1 = ef1, .ef0 = ef0, .beam = goal.beam, .shares = goal.shares, .ahead = goal.ahead};
}

/// From two searches: one of the upper layer alone, and one mostly of the lowest.
WorkTimes measure_times(const Index& index, const Vectors& queries, const TuneGoal& goal) {
  const std::size_t k = goal.k;
  const SearchOptions upper = options_for(goal, 64, 0), lower = options_for(goal, 1, 64);
  const Work work = count_work(index, queries, k, upper), more = count_work(index, queries, k, lower);
  WorkTimes times;
  times.fast_distance = time_of(index, queries, k, upper) / std::max(work.fast, 1.0);
  const Seconds rest = time_of(index, queries, k, lower) - times.fast_distance * more.fast;
  times.slow_distance = std::max(rest, Seconds{0}) / std::max(more.slow, 1.0);
  return times;
}

/// The goal with every beam that is to be tried.
std::vector<TuneGoal> with_beams(const TuneGoal& goal, bool on_disk) {
  std::vector<TuneGoal> all(1, goal);
  if (goal.beam > 0) return all;
  all[0].beam = kMemoryBeam;
  if (!on_disk) return all;
  all.clear();
  for (const std::uint32_t beam : kDiskBeams) {
    all.push_back(goal);
    all.back().beam = all.back().ahead = beam;
  }
  return all;
}

/// What chance may take from the recall of other queries: two standard deviations of a share of this many.
double margin(double recall, std::size_t queries) {
  return 2 * std::sqrt(recall * (1 - recall) / static_cast<double>(std::max<std::size_t>(queries, 1)));
}

}  // namespace

Seconds equation_3_1(std::uint32_t ef1, std::uint32_t ef0, double steps, unsigned threads,
                     const WorkTimes& times) {
  check(threads > 0, "a search has threads");
  const auto rounds = static_cast<double>((ef1 + threads - 1) / threads);
  return times.fast_distance * (ef1 * steps) + times.slow_distance * (rounds * ef0 * steps);
}

Result<TunedSearch> Index::tune(const Vectors& queries, const Neighbours& truth, const TuneGoal& goal) const {
  if (queries.count() == 0 || truth.size() != queries.count())
    return Error{ErrorCode::invalid_argument,
                 fmt::format("tuning needs queries and the exact neighbours of each: there "
                             "are {} queries and {} answers",
                             queries.count(), truth.size())};
  if (const auto usable = search(first_of(queries, 1), goal.k, {}); !usable) return usable.error();
  TunedSearch tuned;
  const Vectors counted = first_of(queries, kCounted);
  std::vector<Setting> settings;
  Seconds fastest{1e9};
  for (const TuneGoal& tried : with_beams(goal, impl_->layout.unit().count > 0)) {
    const WorkTimes times = measure_times(*this, first_of(queries, kTimed), tried);
    for (const std::uint32_t ef1 : kEf1) {
      for (const std::uint32_t ef0 : kEf0) {
        const SearchOptions options = options_for(tried, ef1, ef0);
        const Work work = count_work(*this, counted, goal.k, options);
        const Seconds predicted = times.predict(work.fast, work.slow);
        fastest = std::min(fastest, predicted);
        ++tuned.settings;
        if (predicted <= goal.latency) settings.push_back({options, predicted, times});
      }
    }
  }
  tuned.in_time = settings.size();
  std::stable_sort(settings.begin(), settings.end(),
                   [](const Setting& a, const Setting& b) { return a.predicted < b.predicted; });
  double best = 0;
  const double wanted = std::min(1.0, goal.recall + margin(goal.recall, queries.count() * goal.k));
  for (const Setting& setting : settings) {
    ++tuned.tried;
    tuned.recall = ann::recall(search(queries, goal.k, setting.options).value(), truth, goal.k);
    tuned.options = setting.options;
    tuned.predicted = setting.predicted;
    tuned.times = setting.times;
    if (tuned.recall >= wanted) return tuned;
    best = std::max(best, tuned.recall);
  }
  if (settings.empty())
    return Error{ErrorCode::invalid_argument,
                 fmt::format("no search of this index takes {:.3g} ms: the fastest takes {:.3g} ms",
                             goal.latency.count() * 1e3, fastest.count() * 1e3)};
  return Error{
      ErrorCode::invalid_argument,
      fmt::format("of the {} settings within {:.3g} ms none has a recall of {:.4f} with certainty: the best "
                  "has {:.4f}; allow more time, or build with more links",
                  settings.size(), goal.latency.count() * 1e3, goal.recall, best)};
}

}  // namespace terrace::ann

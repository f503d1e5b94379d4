// SPDX-License-Identifier: Apache-2.0
// Row `cost`: how well equation 3.1 predicts, with the distances that were counted and their measured times;
// and whether tuned settings keep both promises for queries that they were not tuned with (Figs. 3.7
// and 3.8).
#pragma once

#include "ann_memory.hpp"

namespace terrace::bench {

inline nlohmann::json run_cost(const std::filesystem::path& folder, bool quick) {
  const std::size_t count = quick ? 20'000 : 100'000;
  const AnnData data = mixed_data(folder, count, 0.5);
  ann::BuildOptions build;
  build.fast = data.whole() * 17 / 100;
  const ann::Index index = ann::Index::build(data.vectors, build).value();
  ann::Mixture mixture;
  mixture.count = 500;
  mixture.clusters = 200;
  mixture.hubs = 0.5;
  const ann::Vectors learnt = ann::generate(mixture, 2);
  const auto truth = ann::exact_neighbours(data.vectors, learnt, kNeighbours, ann::Metric::l2, 2).value();
  // Any setting will do for the times of work.
  const auto times = index.tune(learnt, truth, {.recall = 0.5, .latency = Seconds{10}}).value().times;
  const auto measure = [&](const ann::SearchOptions& options) {
    std::vector<double> all;
    for (int i = 0; i < 3; ++i) {
      const auto began = Timer::now();
      (void)index.search(data.queries, kNeighbours, options).value();
      all.push_back(seconds_since(began) / static_cast<double>(data.queries.count()));
    }
    return median(all);
  };
  std::vector<double> errors;
  for (const std::uint32_t ef1 : {1U, 6U, 11U, 16U, 26U, 36U, 46U}) {
    for (const std::uint32_t ef0 : {10U, 20U, 30U, 50U, 100U}) {
      const auto before = index.statistics();
      const double took = measure({.ef1 = ef1, .ef0 = ef0});
      const auto after = index.statistics();
      const double queries = 3 * static_cast<double>(data.queries.count());
      const Seconds predicted =
          times.predict(static_cast<double>(after.fast_distances - before.fast_distances) / queries,
                        static_cast<double>(after.slow_distances - before.slow_distances) / queries);
      errors.push_back(std::abs(predicted.count() / took - 1));
    }
  }
  int kept = 0, asked = 0, refused = 0;
  for (const double latency : {50e-6, 100e-6, 200e-6, 400e-6, 1e-3}) {
    for (const double wanted : {0.90, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99}) {
      const auto tuned = index.tune(learnt, truth, {.recall = wanted, .latency = Seconds{latency}});
      if (!tuned) {
        ++refused;
        continue;
      }
      ++asked;
      const double found = data.recall_of(index.search(data.queries, kNeighbours, tuned->options).value());
      kept += found >= wanted && measure(tuned->options) <= latency;
    }
  }
  print_head("Equation 3.1",
             "| settings | median error | 90% of errors | tuned | keep both promises | refused |");
  print_line(fmt::format("| {} | {:.1f}% | {:.1f}% | {} | {} | {} |", errors.size(), 100 * median(errors),
                         100 * quantile(errors, 0.9), asked, kept, refused));
  return {{"median_error", median(errors)},
          {"fast_distance_ns", times.fast_distance.count() * 1e9},
          {"slow_distance_ns", times.slow_distance.count() * 1e9},
          {"tuned", asked},
          {"kept", kept},
          {"refused", refused}};
}

}  // namespace terrace::bench

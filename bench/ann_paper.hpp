// SPDX-License-Identifier: Apache-2.0
// Row `paper`: figures and the table of 002 chapter 3 that need no clock, beside what the paper says.
// Distances are counted; a billion vectors are simulated by what few of them take, which grows with the
// logarithm.
#pragma once

#include <cmath>

#include "ann/layout.hpp"
#include "ann_optane.hpp"

namespace terrace::bench {

/// Table 3.1: bytes by the equations of section 3.3.4.
inline nlohmann::json table_3_1() {
  struct Set {
    const char* name;
    std::size_t element_bytes;
    double promoted, fast_gb, slow_gb;  // as the paper has them
  };
  print_head("Table 3.1: a billion vectors, M = 48, GB",
             "| data | promoted | fast | the paper's, with search data | slow | the paper's |");
  nlohmann::json rows;
  for (const Set& set : {Set{"BIGANN", 128, 0.16, 96, 462}, Set{"DEEP1B", 384, 0.11, 96, 681}}) {
    const auto layers =
        ann::promoted_layers(1'000'000'000, static_cast<std::uint64_t>(set.promoted * 1e9), 48);
    const auto fast = ann::fast_size(layers, set.element_bytes / sizeof(float)),
               slow = ann::slow_size(layers, set.element_bytes / sizeof(float));
    const double fast_gb = static_cast<double>((fast.links + fast.elements).count) / 1e9,
                 slow_gb = static_cast<double>((slow.links + slow.elements).count) / 1e9;
    print_line(fmt::format("| {} | {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} |", set.name, set.promoted, fast_gb,
                           set.fast_gb, slow_gb, set.slow_gb));
    rows.push_back({{"data", set.name}, {"fast_gb", fast_gb}, {"slow_gb", slow_gb}});
  }
  return rows;
}

/// Figure 3.7: which settings keep a latency and a recall, on the paper's machine; and what equation 3.1 as
/// it is printed would let pass, with the distances of a step that one setting showed.
inline nlohmann::json figure_3_7(const AnnData& data, const ann::Index& index) {
  const Seconds limit{100e-6};
  constexpr double kWanted = 0.90;
  const Counted some = count_search(data, index, {.ef1 = 16, .ef0 = 10});
  const double steps = some.fast / 16;
  int all = 0, in_time = 0, kept = 0, passed = 0, passed_kept = 0;
  for (std::uint32_t ef1 = 1; ef1 <= 46; ef1 += 5) {
    for (std::uint32_t ef0 = 0; ef0 <= 50; ef0 += 5) {
      const Counted one = count_search(data, index, {.ef1 = ef1, .ef0 = ef0});
      const bool keeps = one.on_optane(1) <= limit && one.recall >= kWanted;
      const bool passes = ann::equation_3_1(ef1, ef0, steps, kThreads, ann::kOptaneTimes) <= limit;
      ++all, in_time += one.on_optane(1) <= limit, kept += keeps, passed += passes,
          passed_kept += passes && keeps;
    }
  }
  print_head(fmt::format("Figure 3.7: pairs of ef1 and ef0, {}, {:.0f} us and a recall@10 of {}", data.name,
                         limit.count() * 1e6, kWanted),
             "| pairs | in time | in time and recall | the model passes | of these keep both |");
  print_line(fmt::format("| {} | {} | {} | {} | {} |", all, in_time, kept, passed, passed_kept));
  return {
      {"pairs", all}, {"in_time", in_time}, {"kept", kept}, {"passed", passed}, {"passed_kept", passed_kept}};
}

/// a + b log2(n) through some points by least squares, at another n.
inline double extrapolated(const std::vector<std::pair<double, double>>& points, double n) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto count = static_cast<double>(points.size());
  for (const auto& [at, value] : points) {
    const double log = std::log2(at);
    x += log, y += value, xx += log * log, xy += log * value;
  }
  const double slope = (count * xy - x * y) / (count * xx - x * x);
  return (y - slope * x) / count + slope * std::log2(n);
}

/// Figures 3.1 and 3.2: distances of a query by the number of vectors, and what a billion would take.
inline nlohmann::json figure_3_1(const std::filesystem::path& folder, const std::vector<std::size_t>& sizes) {
  constexpr double kBillion = 1e9;
  print_head("Figures 3.1 and 3.2: distances of a query at a recall@10 of 0.95",
             "| vectors | HNSW | ours, fast | ours, slow |");
  std::vector<std::pair<double, double>> hnsw, fast, slow;
  double memory_mode = 0;
  for (const std::size_t size : sizes) {
    const AnnData data = mixed_data(folder, size, 0);
    const ann::Index index = build_promoted(data, ann::Promotion::degree);
    const Counted ours = required(cheapest_at(count_grid(data, index), kRecalls[0],
                                              [](const Counted& some) { return some.on_optane(0); }),
                                  data);
    const SystemPoint system = system_at(count_system(data, kFastShare), kRecalls[0]).value();
    memory_mode = system.memory_mode / system.all_slow;
    const auto n = static_cast<double>(size);
    hnsw.emplace_back(n, system.distances), fast.emplace_back(n, ours.fast), slow.emplace_back(n, ours.slow);
    print_line(
        fmt::format("| {} | {:.0f} | {:.0f} | {:.0f} |", size, system.distances, ours.fast, ours.slow));
  }
  const double all = extrapolated(hnsw, kBillion), upper = extrapolated(fast, kBillion),
               lower = extrapolated(slow, kBillion);
  print_line(fmt::format("| 10^9, by the logarithm | {:.0f} | {:.0f} | {:.0f} |", all, upper, lower));
  const auto ms = [](double fast_count, double slow_count) {
    return ann::kOptaneTimes.predict(fast_count, slow_count).count() * 1e3;
  };
  const double mode = ms(0, all) * memory_mode;
  print_head("A billion vectors on optane-hmann, ms a query (the paper: under 1 at a top-1 recall of 0.95)",
             "| ours, one thread | ours, four threads below | HNSW all slow | HNSW in memory mode |");
  print_line(fmt::format("| {:.2f} | {:.2f} | {:.2f} | {:.2f} |", ms(upper, lower),
                         ms(upper, lower / kThreads), ms(0, all), mode));
  return {{"one_thread_ms", ms(upper, lower)},
          {"four_threads_ms", ms(upper, lower / kThreads)},
          {"hnsw_all_slow_ms", ms(0, all)},
          {"hnsw_memory_mode_ms", mode}};
}

inline nlohmann::json run_paper(const std::filesystem::path& folder, bool quick) {
  const AnnData data = mixed_data(folder, quick ? 10'000 : 100'000, 0);
  const std::vector<std::size_t> sizes = quick ? std::vector<std::size_t>{5'000, 10'000, 20'000}
                                               : std::vector<std::size_t>{25'000, 50'000, 100'000, 200'000};
  nlohmann::json rows{{"table_3_1", table_3_1()}};
  rows["figure_3_7"] = figure_3_7(data, build_promoted(data, ann::Promotion::degree));
  rows["billion"] = figure_3_1(folder, sizes);
  return rows;
}

}  // namespace terrace::bench

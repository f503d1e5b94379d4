// SPDX-License-Identifier: Apache-2.0
// Row `memory`: one thread, everything in memory, beside hnswlib at equal recall.
#pragma once

#include <optional>

#include "ann_data.hpp"
#include "ann_rival.hpp"
#include "report.hpp"

namespace terrace::bench {

constexpr double kRecalls[] = {0.95, 0.99};
constexpr std::uint32_t kLadder[] = {10, 12, 14, 16, 18, 20,  22,  24,  26,  28,  30,  32,  36,  40,  44,  48,
                                     56, 64, 72, 80, 96, 112, 128, 160, 200, 256, 320, 400, 560, 800, 1200};

/// The first rung of the ladder that reaches the recall, if one does.
template <class Search>
std::optional<std::uint32_t> ef_for(const AnnData& data, double wanted, Search search) {
  for (const std::uint32_t ef : kLadder) {
    if (data.recall_of(search(ef)) >= wanted) return ef;
  }
  return std::nullopt;
}

inline nlohmann::json compare_in_memory(const AnnData& data, int rounds) {
  using namespace ann;
  auto began = Timer::now();
  const Index index = Index::build(data.vectors, {}).value();
  const double our_build = seconds_since(began);
  began = Timer::now();
  Rival rival(data.vectors, BuildOptions{}.links, BuildOptions{}.ef_construction);
  const double rival_build = seconds_since(began);
  if (!std::filesystem::exists(data.file(".hnsw"))) rival.save(data.file(".hnsw"));
  const auto ours = [&](std::uint32_t ef) {
    return index.search(data.queries, kNeighbours, {.ef0 = ef}).value();
  };
  const auto theirs = [&](std::uint32_t ef) { return rival.search(data.queries, kNeighbours, ef); };
  nlohmann::json rows;
  for (const double wanted : kRecalls) {
    const auto our_rung = ef_for(data, wanted, ours), rival_rung = ef_for(data, wanted, theirs);
    if (!our_rung || !rival_rung) {
      print_line(fmt::format("{}: a recall of {} is not reached by {}", data.name, wanted,
                             our_rung     ? "hnswlib"
                             : rival_rung ? "Terrace"
                                          : "either"));
      continue;
    }
    const std::uint32_t our_ef = *our_rung, rival_ef = *rival_rung;
    std::vector<double> ratios, our_times;
    for (int round = 0; round < rounds; ++round) {
      began = Timer::now();
      ours(our_ef);
      const double our_time = seconds_since(began);
      began = Timer::now();
      theirs(rival_ef);
      ratios.push_back(seconds_since(began) / our_time);
      our_times.push_back(our_time / static_cast<double>(data.queries.count()) * 1e6);
    }
    rows.push_back({{"recall", wanted},
                    {"our_ef", our_ef},
                    {"rival_ef", rival_ef},
                    {"our_us", median(our_times)},
                    {"ratio", median(ratios)},
                    {"spread", spread(ratios)}});
    print_line(fmt::format("| {} | {} | {} | {} | {:.1f} | {:.2f} ({:.2f} to {:.2f}) | {:.2f} |", data.name,
                           wanted, our_ef, rival_ef, median(our_times), median(ratios), quantile(ratios, 0),
                           quantile(ratios, 1), rival_build / our_build));
  }
  return {{"data", data.name}, {"build_ratio", rival_build / our_build}, {"searches", rows}};
}

inline nlohmann::json run_memory(const std::filesystem::path& folder, bool quick) {
  print_head("In memory, one thread",
             "| data | recall@10 | our ef | hnswlib's ef | our us | our queries over its | build over its |");
  nlohmann::json rows;
  const std::size_t count = quick ? 20'000 : 200'000;
  for (const double hubs : {0.0, 1.0})
    rows.push_back(compare_in_memory(mixed_data(folder, count, hubs), quick ? 5 : 15));
  return rows;
}

}  // namespace terrace::bench

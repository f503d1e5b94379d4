// SPDX-License-Identifier: Apache-2.0
// Row `optane`: the paper's machine. Distances are counted and take what 002 section 3.4.3 measured, 183 ns
// in DRAM and 421 ns in Optane, so no clock and no load of this computer matters; and once with emulated
// memory, by the clock. Rivals keep HNSW in slow memory as the system would: all of it, first come first
// served, or behind a cache that hardware manages.
#pragma once

#include <list>
#include <unordered_map>

#include "ann/layer_builder.hpp"
#include "ann/prepare.hpp"
#include "ann_counts.hpp"
#include "terrace/tier.hpp"

namespace terrace::bench {

/// HNSW's search over a graph of its own, which tells every node it computes a distance to.
class TracedHnsw {
 public:
  explicit TracedHnsw(const AnnData& data)
      : rows_{data.vectors.values.data(), data.vectors.dimension, data.vectors.count(),
              ann::distance_function(ann::Metric::l2), nullptr},
        graph_(ann::build_hnsw(rows_, {})),
        visited_(data.vectors.count()) {}

  template <class Touch>
  std::vector<ann::Neighbour> search(std::span<const float> query, std::size_t ef, Touch touch) {
    std::uint32_t entry = 0;
    for (std::size_t layer = graph_.layers.size(); layer-- > 1;) {
      walk(query, layer, 1, entry, touch);
      entry = pool_.held().front().id;
    }
    walk(query, 0, ef, entry, touch);
    std::vector<ann::Neighbour> found;
    for (const ann::Candidate& one : pool_.held()) found.push_back({graph_.order[one.id], one.distance});
    found.resize(std::min(found.size(), kNeighbours));
    return found;
  }

 private:
  template <class Touch>
  void walk(std::span<const float> query, std::size_t layer, std::size_t ef, std::uint32_t entry,
            Touch touch) {
    const auto distance = [&](std::uint32_t node) {
      touch(graph_.order[node]);
      return rows_.distance(query.data(), rows_.row(graph_.order[node]), rows_.dimension);
    };
    visited_.start();
    visited_.meet(entry);
    pool_.reset(ef);
    pool_.insert({distance(entry), entry});
    const std::size_t width = graph_.layers[layer].links;
    while (const ann::Candidate* next = pool_.expand_next()) {
      const std::uint32_t* links = graph_.links[layer].data() + next->id * width;
      for (std::size_t i = 0; i < width && links[i] != ann::kNoLink; ++i) {
        if (visited_.meet(links[i])) pool_.insert({distance(links[i]), links[i]});
      }
    }
  }

  ann::Rows rows_;
  ann::Graph graph_;
  ann::Visited visited_;
  ann::Pool pool_;
};

/// Memory mode: DRAM as a cache of Optane, of whole records, fully associative (002 section 3.4.1), the least
/// recently used one goes.
class RecordCache {
 public:
  explicit RecordCache(std::size_t most) : most_(most) {}
  bool hit(std::uint32_t row) {
    const auto found = where_.find(row);
    if (found != where_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return true;
    }
    if (where_.size() == most_) {
      where_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(row);
    where_[row] = order_.begin();
    return false;
  }

 private:
  std::size_t most_;
  std::list<std::uint32_t> order_;
  std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> where_;
};

struct SystemTimes {
  std::uint32_t ef = 0;
  double distances = 0;
  Seconds all_slow{0}, first_touch{0}, memory_mode{0};
};

/// Mean times of HNSW's queries with `share` of its records in fast memory.
inline SystemTimes by_system(const AnnData& data, TracedHnsw& hnsw, double wanted, double share) {
  const auto times = ann::kOptaneTimes;
  SystemTimes result;
  const auto none = [](std::uint32_t) {};
  result.ef = ef_for(data, wanted, [&](std::uint32_t ef) {
    ann::Neighbours found;
    for (std::size_t i = 0; i < data.queries.count(); ++i)
      found.push_back(hnsw.search(data.queries[i], ef, none));
    return found;
  });
  const auto first = static_cast<std::uint32_t>(share * static_cast<double>(data.vectors.count()));
  RecordCache cache(first);
  std::uint64_t all = 0, touched_first = 0, hits = 0;
  for (std::size_t i = 0; i < data.warming.count(); ++i)
    hnsw.search(data.warming[i], result.ef, [&](std::uint32_t row) { cache.hit(row); });
  for (std::size_t i = 0; i < data.queries.count(); ++i) {
    hnsw.search(data.queries[i], result.ef, [&](std::uint32_t row) {
      const bool hit = cache.hit(row);
      ++all, touched_first += row < first, hits += hit;
    });
  }
  const auto count = static_cast<double>(data.queries.count());
  const auto mean = [&](std::uint64_t fast) {
    return times.predict(static_cast<double>(fast) / count, static_cast<double>(all - fast) / count);
  };
  result.distances = static_cast<double>(all) / count;
  result.all_slow = mean(0);
  result.first_touch = mean(touched_first);
  result.memory_mode = mean(hits);
  return result;
}

/// The paper's share of promoted nodes.
constexpr double kFastShare = 0.17;

inline ann::Index build_promoted(const AnnData& data, ann::Promotion promotion, std::uint32_t code_bytes) {
  ann::BuildOptions options;
  options.fast = Bytes{static_cast<std::uint64_t>(kFastShare * static_cast<double>(data.whole().count))};
  options.promotion = promotion;
  options.code_bytes = code_bytes;
  return ann::Index::build(data.vectors, options).value();
}

inline Counted cheapest_on_optane(const AnnData& data, const ann::Index& index, double wanted,
                                  double guess = 1) {
  const auto one = cheapest(data, index, wanted, [&](const Counted& some) { return some.on_optane(guess); });
  if (!one) throw std::runtime_error("an index does not reach the recall on " + data.name);
  return *one;
}

inline nlohmann::json count_on_optane(const AnnData& data) {
  const auto dimension = static_cast<std::uint32_t>(data.vectors.dimension);
  const ann::Index by_degree = build_promoted(data, ann::Promotion::degree, 0),
                   at_random = build_promoted(data, ann::Promotion::random, 0),
                   with_codes = build_promoted(data, ann::Promotion::degree, dimension / 8);
  const double guess = guess_share(data, dimension / 8);
  TracedHnsw hnsw(data);
  nlohmann::json rows;
  for (const double wanted : {0.95, 0.99, 0.995}) {
    const Counted degree = cheapest_on_optane(data, by_degree, wanted),
                  random = cheapest_on_optane(data, at_random, wanted),
                  codes = cheapest_on_optane(data, with_codes, wanted, guess);
    const SystemTimes system = by_system(data, hnsw, wanted, kFastShare);
    const auto over = [&](const Counted& ours) {
      const Seconds time = ours.on_optane(guess);
      return nlohmann::json{{"us", time.count() * 1e6},
                            {"fast", ours.fast},
                            {"guesses", ours.guesses},
                            {"slow", ours.slow},
                            {"ef1", ours.options.ef1},
                            {"ef0", ours.options.ef0},
                            {"over_memory_mode", system.memory_mode / time},
                            {"over_first_touch", system.first_touch / time},
                            {"over_all_slow", system.all_slow / time}};
    };
    const double by_chance = random.on_optane(guess) / degree.on_optane(guess);
    rows.push_back({{"recall", wanted},
                    {"hnsw_distances", system.distances},
                    {"hnsw_memory_mode_us", system.memory_mode.count() * 1e6},
                    {"hnsw_first_touch_us", system.first_touch.count() * 1e6},
                    {"hnsw_all_slow_us", system.all_slow.count() * 1e6},
                    {"hm_ann", over(degree)},
                    {"with_codes", over(codes)},
                    {"over_random_promotion", by_chance}});
    for (const auto& [name, ours] : {std::pair("HM-ANN", degree), std::pair("with codes", codes)}) {
      const auto row = over(ours);
      print_line(fmt::format(
          "| {} | {} | {} | {:.0f} | {:.0f} + {:.0f} + {:.0f} | {:.1f} | {:.2f} | {:.2f} | {:.2f} | {} |",
          data.name, wanted, name, system.distances, ours.fast, ours.guesses, ours.slow,
          row["us"].get<double>(), row["over_memory_mode"].get<double>(),
          row["over_first_touch"].get<double>(), row["over_all_slow"].get<double>(),
          ours.guesses > 0 ? std::string() : fmt::format("{:.2f}", by_chance)));
    }
  }
  return {{"data", data.name}, {"guess_over_distance", guess}, {"searches", rows}};
}

/// By the clock: the same index with its lowest layer in ordinary and in emulated memory, with and without
/// what the paper adds (its Fig. 3.5).
inline nlohmann::json time_on_emulated(const AnnData& data) {
  ann::BuildOptions options;
  options.fast = data.whole() * 17 / 100;
  options.threads = 2;
  const auto tier = open_tier(fmt::format("emulated:{}MiB,read=39GB/s,write=13GB/s,latency=304ns",
                                          (data.whole().count >> 20) + 16))
                        .value();
  const ann::Index slow = ann::Index::build(data.vectors, options, tier.get()).value();
  ann::BuildOptions plain;
  plain.threads = 2;
  const auto other = open_tier(fmt::format("emulated:{}MiB,read=39GB/s,write=13GB/s,latency=304ns",
                                           (data.whole().count >> 20) + 16))
                         .value();
  const ann::Index hnsw = ann::Index::build(data.vectors, plain, other.get()).value();
  const Counted ours = cheapest_on_optane(data, slow, kRecalls[0]);
  const auto theirs = cheapest(data, hnsw, kRecalls[0], [](const Counted& some) { return some.distances(); });
  if (!theirs) throw std::runtime_error("HNSW does not reach the recall on " + data.name);
  struct Step {
    const char* name;
    const ann::Index* index;
    ann::SearchOptions options;
  };
  ann::SearchOptions bare = ours.options, parallel = ours.options, whole = ours.options,
                     hnsw_bare = theirs->options, hnsw_parallel = theirs->options;
  bare.ahead = 0, hnsw_bare.ahead = 0, hnsw_parallel.ahead = 0;
  parallel.shares = 2, parallel.ahead = 0;
  hnsw_parallel.shares = 2, hnsw_parallel.ef1 = 2;
  whole.ahead = 4;
  nlohmann::json rows;
  std::vector<Step> steps{{"HNSW", &hnsw, hnsw_bare},
                          {"HNSW + parallel L0", &hnsw, hnsw_parallel},
                          {"HNSW + promotion", &slow, bare},
                          {"HNSW + promotion + parallel L0", &slow, parallel},
                          {"HNSW + promotion + prefetch", &slow, whole}};
  std::vector<std::vector<double>> times(steps.size());
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto began = Timer::now();
      (void)steps[i].index->search(data.queries, kNeighbours, steps[i].options).value();
      times[i].push_back(seconds_since(began) * 1e6 / static_cast<double>(data.queries.count()));
    }
  }
  print_head("By the clock in emulated memory (Fig. 3.5), recall@10 of 0.95",
             "| step | us a query | over HNSW |");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    print_line(fmt::format("| {} | {:.1f} | {:.2f} |", steps[i].name, median(times[i]),
                           median(times[0]) / median(times[i])));
    rows.push_back({{"step", steps[i].name},
                    {"us", median(times[i])},
                    {"over_hnsw", median(times[0]) / median(times[i])}});
  }
  return rows;
}

inline nlohmann::json run_optane(const std::filesystem::path& folder, bool quick) {
  const std::size_t count = quick ? 20'000 : 100'000;
  std::vector<AnnData> all{mixed_data(folder, count, 0), mixed_data(folder, count, 1)};
  if (has_sift(folder)) all.push_back(sift_data(folder, count));
  print_head(
      "Counted, at 183 and 421 ns a distance, 17% of memory is fast",
      "| data | recall@10 | ours | HNSW's distances | fast + guesses + slow | our us | over memory mode | "
      "over first-touch | over all slow | degree over random |");
  nlohmann::json rows;
  for (const AnnData& data : all) rows.push_back(count_on_optane(data));
  return {{"counted", rows}, {"emulated", time_on_emulated(all[0])}};
}

}  // namespace terrace::bench

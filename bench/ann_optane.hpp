// SPDX-License-Identifier: Apache-2.0
// Row `optane`: the paper's machine. Distances are counted and take what 002 section 3.4.3 measured, 183 ns
// in DRAM and 421 ns in Optane, so no clock and no load of this computer matters; and once with emulated
// memory, by the clock. Rivals keep HNSW in slow memory as the system would: all of it, first come first
// served, or behind a cache that hardware manages.
#pragma once

#include <future>
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

/// Memory mode: DRAM as a cache of Optane that hardware manages (002 sections 3.4.1 and 7.4.1). It is
/// direct-mapped: a record has one place, and takes it from whichever record was there.
class DirectCache {
 public:
  explicit DirectCache(std::size_t places) : held_(places, ann::kNoLink) {}
  bool hit(std::uint32_t row) { return std::exchange(held_[row % held_.size()], row) == row; }

 private:
  std::vector<std::uint32_t> held_;
};

/// What no hardware has: a record may lie anywhere, and the least recently used one goes.
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

/// One setting of HNSW, with its times where the system decides what is in fast memory.
struct SystemPoint {
  double recall = 0, distances = 0;
  Seconds all_slow{0}, first_touch{0}, memory_mode{0}, any_place{0};  ///< the last: an ideal cache's
};

/// Mean times of HNSW's queries by ef, with `share` of its records in fast memory.
inline std::vector<SystemPoint> count_system(const AnnData& data, double share) {
  TracedHnsw hnsw(data);
  const auto times = ann::kOptaneTimes;
  const auto first = static_cast<std::uint32_t>(share * static_cast<double>(data.vectors.count()));
  DirectCache direct(first);
  RecordCache ideal(first);
  std::vector<SystemPoint> points;
  for (const std::uint32_t ef : kLadder) {
    std::uint64_t all = 0, touched_first = 0, hits = 0, ideal_hits = 0;
    for (std::size_t i = 0; i < data.warming.count(); ++i)
      hnsw.search(data.warming[i], ef, [&](std::uint32_t row) { direct.hit(row), ideal.hit(row); });
    ann::Neighbours found;
    for (std::size_t i = 0; i < data.queries.count(); ++i) {
      found.push_back(hnsw.search(data.queries[i], ef, [&](std::uint32_t row) {
        ++all, touched_first += row < first;
        hits += direct.hit(row), ideal_hits += ideal.hit(row);
      }));
    }
    const auto count = static_cast<double>(data.queries.count());
    const auto mean = [&](std::uint64_t fast) {
      return times.predict(static_cast<double>(fast) / count, static_cast<double>(all - fast) / count);
    };
    points.push_back({data.recall_of(found), static_cast<double>(all) / count, mean(0), mean(touched_first),
                      mean(hits), mean(ideal_hits)});
    if (points.back().recall >= kHighestRecall) break;
  }
  return points;
}

/// Between two settings, as at_recall() has it.
inline std::optional<SystemPoint> system_at(const std::vector<SystemPoint>& points, double wanted) {
  const auto next =
      std::find_if(points.begin(), points.end(), [&](const auto& one) { return one.recall >= wanted; });
  if (next == points.end()) return std::nullopt;
  if (next == points.begin()) return *next;
  const SystemPoint &below = *(next - 1), &above = *next;
  const double share = (wanted - below.recall) / (above.recall - below.recall);
  const auto mix = [&](auto SystemPoint::*field) {
    return below.*field + share * (above.*field - below.*field);
  };
  return SystemPoint{wanted,
                     mix(&SystemPoint::distances),
                     mix(&SystemPoint::all_slow),
                     mix(&SystemPoint::first_touch),
                     mix(&SystemPoint::memory_mode),
                     mix(&SystemPoint::any_place)};
}

constexpr unsigned kThreads = 4;  ///< the paper's Thr, that search the lowest layer

/// The paper's share of promoted nodes.
constexpr double kFastShare = 0.17;

inline ann::Index build_promoted(const AnnData& data, ann::Promotion promotion, std::uint32_t code_bytes = 0,
                                 std::uint32_t links = 16) {
  ann::BuildOptions options;
  options.links = links;
  if (links > 16) options.ef_construction = 200;
  options.fast = Bytes{static_cast<std::uint64_t>(kFastShare * static_cast<double>(data.whole(links).count))};
  options.promotion = promotion;
  options.metric = data.metric;
  options.code_bytes = code_bytes;
  return ann::Index::build(data.vectors, options).value();
}

/// Both at once: counts do not depend on what else the processor does.
template <class First, class Second>
auto beside(First first, Second second) {
  auto other = std::async(std::launch::async, first);
  auto mine = second();
  return std::pair(other.get(), std::move(mine));
}

inline Counted required(std::optional<Counted> one, const AnnData& data) {
  if (!one) throw std::runtime_error("an index does not reach the recall on " + data.name);
  return *one;
}

inline nlohmann::json count_on_optane(const AnnData& data) {
  const auto code_bytes = static_cast<std::uint32_t>(data.vectors.dimension / 8);
  struct Way {
    const char* name;
    std::uint32_t shares;
    std::vector<Curve> grid;
  };
  const auto count_ours = [&] {
    std::vector<Way> ways;
    const ann::Index plain = build_promoted(data, ann::Promotion::degree);
    ways.push_back({"HM-ANN, one thread", 1, count_grid(data, plain)});
    ways.push_back({"HM-ANN", kThreads, count_grid(data, plain, kThreads)});
    ways.push_back({"with codes, one thread", 1,
                    count_grid(data, build_promoted(data, ann::Promotion::degree, code_bytes))});
    return ways;
  };
  const auto [ways, system] = beside(count_ours, [&] { return count_system(data, kFastShare); });
  const double guess = guess_share(data, code_bytes);
  const auto cost = [&](const Counted& some) { return some.in_parallel(guess); };
  nlohmann::json rows;
  for (const double wanted : {0.95, 0.99, 0.995}) {
    const auto reached = system_at(system, wanted);
    if (!reached) {
      print_line(fmt::format("{}: HNSW does not reach a recall of {}", data.name, wanted));
      continue;
    }
    const SystemPoint& hnsw = *reached;
    nlohmann::json row{{"recall", wanted},
                       {"hnsw_distances", hnsw.distances},
                       {"hnsw_memory_mode_us", hnsw.memory_mode.count() * 1e6},
                       {"hnsw_ideal_cache_us", hnsw.any_place.count() * 1e6},
                       {"hnsw_first_touch_us", hnsw.first_touch.count() * 1e6},
                       {"hnsw_all_slow_us", hnsw.all_slow.count() * 1e6}};
    for (const auto& [name, shares, grid] : ways) {
      const auto best = cheapest_at(grid, wanted, cost);
      if (!best) {
        print_line(fmt::format("{}: {} does not reach a recall of {}", data.name, name, wanted));
        continue;
      }
      const Counted& ours = *best;
      const Seconds time = cost(ours);
      row[name] = {{"us", time.count() * 1e6},
                   {"fast", ours.fast},
                   {"guesses", ours.guesses},
                   {"slow", ours.slow},
                   {"longest_share", ours.longest_share},
                   {"threads", shares},
                   {"ef1", ours.options.ef1},
                   {"ef0", ours.options.ef0},
                   {"over_memory_mode", hnsw.memory_mode / time},
                   {"over_ideal_cache", hnsw.any_place / time},
                   {"over_first_touch", hnsw.first_touch / time},
                   {"over_all_slow", hnsw.all_slow / time}};
      print_line(fmt::format(
          "| {} | {} | {} | {:.0f} | {:.0f} + {:.0f} + {:.0f} | {:.1f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |",
          data.name, wanted, name, hnsw.distances, ours.fast, ours.guesses, ours.longest_share,
          time.count() * 1e6, hnsw.memory_mode / time, hnsw.any_place / time, hnsw.first_touch / time,
          hnsw.all_slow / time));
    }
    rows.push_back(row);
  }
  return {{"data", data.name}, {"guess_over_distance", guess}, {"searches", rows}};
}

/// Figure 3.3: nodes promoted by degree against as many chosen at random, searched alike in one of three
/// ways: each at its best; the paper's efL0 of 2 with the nearest one asked for; and Algorithm 3's list as
/// long as that of its entry points.
inline nlohmann::json compare_promotions(const AnnData& data, std::uint32_t links) {
  struct Ways {
    std::vector<Curve> best;
    Curve narrow, equal;
  };
  const auto count = [&](ann::Promotion promotion) {
    return [&data, promotion, links] {
      const ann::Index index = build_promoted(data, promotion, 0, links);
      const auto ladder =
          std::to_array({10U, 14U, 20U, 28U, 40U, 56U, 80U, 112U, 160U, 224U, 320U, 448U, 640U, 1000U});
      return Ways{count_grid(data, index),
                  count_curve(
                      data, index,
                      std::to_array({1U, 2U, 4U, 8U, 12U, 16U, 24U, 32U, 48U, 64U, 96U, 128U, 192U, 256U,
                                     384U, 512U, 768U, 1000U}),
                      [](std::uint32_t ef1) { return ann::SearchOptions{.ef1 = ef1, .ef0 = 2}; }, 1),
                  count_curve(data, index, ladder,
                              [](std::uint32_t ef) { return ann::SearchOptions{.ef1 = ef, .ef0 = ef}; })};
    };
  };
  const auto [degree, random] = beside(count(ann::Promotion::degree), count(ann::Promotion::random));
  const auto cost = [](const Counted& some) { return some.on_optane(0); };
  const auto ratio = [&](const std::optional<Counted>& ours, const std::optional<Counted>& theirs) {
    if (!ours) return std::string(theirs ? "only random" : "neither");
    return theirs ? fmt::format("{:.2f}", cost(*theirs) / cost(*ours)) : std::string("only degree");
  };
  nlohmann::json rows;
  for (const double wanted : {0.95, 0.99, 0.995}) {
    const std::string best = ratio(cheapest_at(degree.best, wanted, cost),
                                   cheapest_at(random.best, wanted, cost)),
                      narrow = ratio(at_recall(degree.narrow, wanted), at_recall(random.narrow, wanted)),
                      equal = ratio(at_recall(degree.equal, wanted), at_recall(random.equal, wanted));
    rows.push_back({{"recall", wanted}, {"best", best}, {"ef0_2_top_1", narrow}, {"ef0_as_ef1", equal}});
    print_line(fmt::format("| {} | {} | {} | {} | {} | {} |", data.name, links, wanted, best, narrow, equal));
  }
  return {{"data", data.name}, {"links", links}, {"searches", rows}};
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
  const auto in = [&](const ann::Index& index) {
    return [&](const ann::SearchOptions& one) { return count_search(data, index, one); };
  };
  const auto optane = [](const Counted& some) { return some.on_optane(0); };
  const Counted ours = required(cheapest(in(slow), kRecalls[0], optane, {1, 8, 16, 32, 64}), data);
  const auto theirs =
      cheapest(in(hnsw), kRecalls[0], [](const Counted& some) { return some.distances(); }, {1});
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

inline nlohmann::json run_optane(const std::filesystem::path& folder, bool quick, const std::string& kind) {
  const std::vector<AnnData> all = all_data(folder, quick ? 20'000 : 200'000, kind);
  print_head("Counted, at 183 and 421 ns a distance, 17% of memory is fast",
             "| data | recall@10 | ours | HNSW's distances | fast + guesses + slow of a thread | our us | "
             "over memory mode | "
             "over an ideal cache | over first-touch | over all slow |");
  nlohmann::json rows;
  for (const AnnData& data : all) rows.push_back(count_on_optane(data));
  return rows;
}

inline nlohmann::json run_emulated(const std::filesystem::path& folder, bool quick) {
  return time_on_emulated(mixed_data(folder, quick ? 20'000 : 200'000, 0));
}

/// `links`: M; the paper's graph of a billion vectors has 48.
inline nlohmann::json run_promotion(const std::filesystem::path& folder, std::size_t count,
                                    const std::string& kind, std::uint32_t links) {
  const std::vector<AnnData> all = all_data(folder, count, kind);
  print_head("Degree over random, counted at 183 and 421 ns a distance (Fig. 3.3: 1.8, 4.3, 3.9)",
             "| data | M | recall | each at its best | efL0 = 2, top-1 | efL0 = efL1 |");
  nlohmann::json rows;
  for (const AnnData& data : all) rows.push_back(compare_promotions(data, links));
  return rows;
}

}  // namespace terrace::bench

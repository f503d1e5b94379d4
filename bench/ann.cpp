// SPDX-License-Identifier: Apache-2.0
// Claim: an index of vectors answers at least 1.1 times as many queries as hnswlib in memory, and with its
// lowest layer on a disk still within a millisecond.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "ann/generate.hpp"
#include "ann_rival.hpp"
#include "contender.hpp"
#include "report.hpp"
#include "terrace/ann.hpp"

namespace {

using namespace terrace;
using namespace terrace::ann;
using namespace terrace::bench;
using Timer = std::chrono::steady_clock;

double seconds_since(Timer::time_point began) {
  return std::chrono::duration<double>(Timer::now() - began).count();
}

constexpr std::size_t kNeighbours = 10;
constexpr double kRecalls[] = {0.95, 0.99};
constexpr std::uint32_t kLadder[] = {1,  2,  4,  8,  12, 16,  20,  24,  28,  32, 40,
                                     48, 56, 64, 80, 96, 128, 160, 200, 256, 400};

struct Data {
  std::string name;
  Vectors vectors, queries;
  Neighbours truth;

  double recall_of(const Neighbours& found) const { return recall(found, truth, kNeighbours); }
};

Data make_data(const std::string& name, std::size_t count, double hubs) {
  Mixture mixture;
  mixture.count = count;
  mixture.clusters = 200;
  mixture.hubs = hubs;
  Data data{name, generate(mixture), {}, {}};
  mixture.count = 1000;
  data.queries = generate(mixture, 1);
  data.truth = exact_neighbours(data.vectors, data.queries, kNeighbours, Metric::l2, 2).value();
  return data;
}

Bytes whole_size(const Data& data) {
  return Bytes{data.vectors.count() * (128 * sizeof(float) + 33 * sizeof(int))};
}

// ---- in memory, beside hnswlib

/// The first rung of the ladder that reaches the recall.
template <class Search>
std::uint32_t ef_for(const Data& data, double wanted, Search search) {
  for (const std::uint32_t ef : kLadder) {
    if (ef >= kNeighbours && data.recall_of(search(ef)) >= wanted) return ef;
  }
  throw std::runtime_error(fmt::format("no ef reaches a recall of {} on {}", wanted, data.name));
}

nlohmann::json compare_in_memory(const Data& data, int rounds) {
  const auto started = Timer::now();
  const Index index = Index::build(data.vectors, {}).value();
  const double our_build = seconds_since(started);
  const auto again = Timer::now();
  Rival rival(data.vectors, BuildOptions{}.links, BuildOptions{}.ef_construction);
  const double rival_build = seconds_since(again);
  const auto ours = [&](std::uint32_t ef) {
    return index.search(data.queries, kNeighbours, {.ef0 = ef}).value();
  };
  const auto theirs = [&](std::uint32_t ef) { return rival.search(data.queries, kNeighbours, ef); };
  nlohmann::json rows;
  for (const double wanted : kRecalls) {
    const std::uint32_t our_ef = ef_for(data, wanted, ours), rival_ef = ef_for(data, wanted, theirs);
    std::vector<double> ratios;
    for (int round = 0; round < rounds; ++round) {
      auto began = Timer::now();
      ours(our_ef);
      const double our_time = seconds_since(began);
      began = Timer::now();
      theirs(rival_ef);
      ratios.push_back(seconds_since(began) / our_time);
    }
    rows.push_back({{"recall", wanted},
                    {"our_ef", our_ef},
                    {"rival_ef", rival_ef},
                    {"ratio", median(ratios)},
                    {"spread", spread(ratios)}});
    print_line(
        fmt::format("| {} | {} | {} | {} | {:.2f} |", data.name, wanted, our_ef, rival_ef, median(ratios)));
  }
  return {{"data", data.name}, {"build_ratio", rival_build / our_build}, {"searches", rows}};
}

// ---- counted on the paper's machine, without a clock

/// 002 section 3.4.3: a distance in DRAM and in Optane.
constexpr WorkTimes kPaper{Seconds{183e-9}, Seconds{421e-9}};

struct Counted {
  SearchOptions options;
  double fast = 0, slow = 0;
};

/// The setting of least time, by counted distances, that reaches the recall.
std::optional<Counted> cheapest(const Data& data, const Index& index, double wanted, const WorkTimes& times) {
  std::optional<Counted> best;
  const auto cost = [&](const Counted& one) { return times.predict(one.fast, one.slow); };
  for (const std::uint32_t ef1 : kLadder) {
    for (const std::uint32_t ef0 : kLadder) {
      const auto before = index.statistics();
      const Neighbours found = index.search(data.queries, kNeighbours, {.ef1 = ef1, .ef0 = ef0}).value();
      const auto after = index.statistics();
      const auto mean = [&](std::uint64_t SearchStatistics::*field) {
        return static_cast<double>(after.*field - before.*field) / static_cast<double>(data.queries.count());
      };
      const Counted one{{.ef1 = ef1, .ef0 = ef0},
                        mean(&SearchStatistics::fast_distances),
                        mean(&SearchStatistics::slow_distances)};
      // Wider searches of the lowest layer only cost more once the recall is reached.
      if (best && cost(one) >= cost(*best)) break;
      if (data.recall_of(found) < wanted) continue;
      best = one;
      break;
    }
  }
  return best;
}

nlohmann::json count_work(const Data& data) {
  BuildOptions options;
  const Index hnsw = Index::build(data.vectors, options).value();
  // The paper's share of promoted nodes.
  options.fast = whole_size(data) / 100 * 17;
  const Index by_degree = Index::build(data.vectors, options).value();
  options.promotion = Promotion::random;
  const Index at_random = Index::build(data.vectors, options).value();
  const WorkTimes all_slow{kPaper.slow_distance, kPaper.slow_distance};
  nlohmann::json rows;
  for (const double wanted : kRecalls) {
    const auto plain = cheapest(data, hnsw, wanted, all_slow),
               degree = cheapest(data, by_degree, wanted, kPaper),
               random = cheapest(data, at_random, wanted, kPaper);
    if (!plain || !degree || !random)
      throw std::runtime_error("an index does not reach the recall on " + data.name);
    const Seconds plain_time = all_slow.predict(plain->fast, plain->slow);
    const Seconds degree_time = kPaper.predict(degree->fast, degree->slow);
    const Seconds random_time = kPaper.predict(random->fast, random->slow);
    rows.push_back({{"recall", wanted},
                    {"hnsw_distances", plain->fast + plain->slow},
                    {"fast_distances", degree->fast},
                    {"slow_distances", degree->slow},
                    {"ef1", degree->options.ef1},
                    {"ef0", degree->options.ef0},
                    {"over_hnsw_in_slow_memory", plain_time / degree_time},
                    {"over_random_promotion", random_time / degree_time}});
    print_line(fmt::format("| {} | {} | {:.0f} | {:.0f} + {:.0f} | {:.2f} | {:.2f} |", data.name, wanted,
                           plain->fast + plain->slow, degree->fast, degree->slow, plain_time / degree_time,
                           random_time / degree_time));
  }
  return {{"data", data.name}, {"searches", rows}};
}

// ---- on a disk

nlohmann::json search_disk(const Data& data, std::uint64_t percent, const std::filesystem::path& folder) {
  BuildOptions options;
  options.fast = whole_size(data) * percent / 100;
  options.cache = options.fast / 4;
  Index::build(data.vectors, options).value().save(folder).value();
  const Index index = Index::open(folder, {.placement = Placement::disk, .cache = options.cache}).value();
  const auto setting = cheapest(data, index, kRecalls[0], {Seconds{100e-9}, Seconds{10e-6}});
  if (!setting) throw std::runtime_error("the index on the disk does not reach the recall");
  std::vector<double> times;
  const auto before = index.statistics();
  for (std::size_t i = 0; i < data.queries.count(); ++i) {
    const Vectors one{data.queries.dimension, {data.queries[i].begin(), data.queries[i].end()}};
    const auto began = Timer::now();
    (void)index.search(one, kNeighbours, setting->options).value();
    times.push_back(seconds_since(began) * 1e3);
  }
  const auto after = index.statistics();
  double sum = 0;
  for (const double time : times) sum += time;
  const double mean = sum / static_cast<double>(times.size()), count = static_cast<double>(times.size());
  const double reads = static_cast<double>(after.reads - before.reads) / count,
               rounds = static_cast<double>(after.rounds - before.rounds) / count;
  print_line(fmt::format("| {}% | {} | {} | {:.2f} | {:.2f} | {:.1f} | {:.1f} |", percent,
                         setting->options.ef1, setting->options.ef0, mean, quantile(times, 0.99), reads,
                         rounds));
  return {{"percent", percent},
          {"mean_ms", mean},
          {"p99_ms", quantile(times, 0.99)},
          {"reads", reads},
          {"rounds", rounds},
          {"ef1", setting->options.ef1},
          {"ef0", setting->options.ef0},
          {"fast_bytes", index.size().fast().count}};
}

void run(bool quick) {
  const std::size_t count = quick ? 20'000 : 200'000;
  const Data plain = make_data("clustered", count, 0), hubs = make_data("hubs", count, 1);
  print_head("In memory, one thread", "| data | recall@10 | our ef | hnswlib's ef | our queries over its |");
  nlohmann::json memory;
  for (const Data* data : {&plain, &hubs}) memory.push_back(compare_in_memory(*data, quick ? 5 : 15));
  print_head("Counted, at 183 and 421 ns a distance",
             "| data | recall@10 | HNSW's distances | HM-ANN's, fast + slow | over HNSW in slow memory | "
             "degree over random |");
  nlohmann::json counted;
  for (const Data* data : {&plain, &hubs}) counted.push_back(count_work(*data));
  print_head("On a disk, recall@10 of 0.95", "| memory | ef1 | ef0 | mean, ms | p99, ms | reads | rounds |");
  const ScratchFolder folder(std::filesystem::temp_directory_path() /
                             fmt::format("terrace-bench-ann-{}", getpid()));
  nlohmann::json disk;
  for (const std::uint64_t percent : {50, 30, 17}) disk.push_back(search_disk(plain, percent, folder.path()));
  const auto& first = memory[0]["searches"][0];
  print_result(
      "an index of vectors answers more queries than hnswlib in memory, and within a millisecond on a disk",
      "ratio >= 1.1 at equal recall; build_ratio >= 1; mean_ms <= 0.6 and 0.8 in 50 and 30% of the memory",
      first["ratio"], first["spread"], {{"memory", memory}, {"counted", counted}, {"disk", disk}});
}

}  // namespace

int main(int argc, char** argv) { return guarded_main(argc, argv, run); }

// SPDX-License-Identifier: Apache-2.0
// Row `large`: an index of more vectors than memory holds, built in a group of limited memory without swap,
// killed on the way and built on, then searched on the disk within the same memory.
#pragma once

#include <cmath>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <mutex>
#include <thread>

#include "ann_contest.hpp"

namespace terrace::bench {

constexpr std::size_t kLargePart = 100'000;

inline ann::Mixture large_mixture() {
  ann::Mixture mixture;
  mixture.count = kLargePart;
  mixture.clusters = 500;
  return mixture;
}

/// Finds exact neighbours among vectors that come part by part: distances of floats choose a few more than
/// are wanted, of which doubles choose the nearest.
class LargeTruth {
 public:
  explicit LargeTruth(const ann::Vectors& queries) : queries_(queries), kept_(queries.count()) {}

  void add(const ann::Vectors& part, std::size_t first) {
    const auto distance = ann::distance_function(ann::Metric::l2);
    for (std::size_t row = 0; row < part.count(); ++row) {
      for (std::size_t query = 0; query < kept_.size(); ++query) {
        std::vector<Kept>& kept = kept_[query];
        const float here = distance(queries_[query].data(), part[row].data(), part.dimension);
        if (kept.size() == kMore && here >= kept.back().distance) continue;
        const Kept one{here, static_cast<std::uint32_t>(first + row), {part[row].begin(), part[row].end()}};
        kept.insert(std::upper_bound(kept.begin(), kept.end(), one,
                                     [](const Kept& a, const Kept& b) { return a.distance < b.distance; }),
                    one);
        if (kept.size() > kMore) kept.pop_back();
      }
    }
  }

  ann::Neighbours get() const {
    ann::Neighbours truth;
    for (std::size_t query = 0; query < kept_.size(); ++query) {
      ann::Vectors nearest{queries_.dimension, {}};
      for (const Kept& one : kept_[query])
        nearest.values.insert(nearest.values.end(), one.vector.begin(), one.vector.end());
      auto found =
          ann::exact_neighbours(nearest, one_of(queries_, query), kNeighbours, ann::Metric::l2).value()[0];
      for (ann::Neighbour& one : found) one.id = kept_[query][one.id].row;
      truth.push_back(std::move(found));
    }
    return truth;
  }

 private:
  static constexpr std::size_t kMore = 2 * kNeighbours;
  struct Kept {
    float distance;
    std::uint32_t row;
    std::vector<float> vector;
  };
  const ann::Vectors& queries_;
  std::vector<std::vector<Kept>> kept_;
};

/// Writes the data part by part, and finds the exact neighbours on the way.
inline ann::Neighbours write_large(const std::filesystem::path& path, std::size_t count,
                                   const ann::Vectors& queries) {
  std::FILE* out = std::fopen(path.c_str(), "wb");
  if (out == nullptr) throw std::runtime_error("cannot write " + path.native());
  const std::uint32_t header[] = {static_cast<std::uint32_t>(count), 128};
  bool good = std::fwrite(header, sizeof header, 1, out) == 1;
  LargeTruth truth(queries);
  for (std::size_t first = 0; first < count; first += kLargePart) {
    ann::Mixture mixture = large_mixture();
    mixture.count = std::min(kLargePart, count - first);
    const ann::Vectors part = ann::generate(mixture, 2 + first / kLargePart);
    good =
        good && std::fwrite(part.values.data(), sizeof(float), part.values.size(), out) == part.values.size();
    truth.add(part, first);
  }
  if (std::fclose(out) != 0 || !good) throw std::runtime_error("cannot write " + path.native());
  return truth.get();
}

/// M and efConstruction.
struct LargeGraph {
  std::uint32_t links, ef_construction;
};

/// The process that builds: DATA INDEX MEMORY FAST LINKS EF_CONSTRUCTION.
inline int build_large(const std::vector<std::string>& words) {
  ann::BuildOptions options;
  options.fast = Bytes{std::stoull(words.at(3))};
  options.cache = options.fast / 8;
  options.links = static_cast<std::uint32_t>(std::stoul(words.at(4)));
  options.ef_construction = static_cast<std::uint32_t>(std::stoul(words.at(5)));
  options.code_bytes = 32;
  options.builders = 2;
  std::cout << getpid() << std::endl;
  std::string last;
  options.progress = [&](std::string_view stage, double share) {
    const auto line = fmt::format("{} {:.0f}%", stage, std::floor(share * 10) * 10);
    if (line != last) std::cout << line << std::endl;
    last = line;
  };
  ann::build_index(words.at(0), words.at(1), options, Bytes{std::stoull(words.at(2))}).value();
  std::cout << "built" << std::endl;
  return 0;
}

/// What builds of one index took so far, kept beside it: a run that was ended goes on from there.
struct LargeProgress {
  int killed = 0;
  double seconds = 0, peak = 0;  ///< the peak as a share of the limit

  static LargeProgress read(const std::filesystem::path& path) {
    const auto kept = nlohmann::json::parse(std::ifstream(path), nullptr, false);
    if (!kept.is_object()) return {};
    return {kept.at("killed"), kept.at("seconds"), kept.at("peak")};
  }
  void write(const std::filesystem::path& path) const {
    std::ofstream(path) << nlohmann::json{{"killed", killed}, {"seconds", seconds}, {"peak", peak}};
  }
};

/// One process that builds until it is done, or is killed: when a third of the shards are there, once more
/// when the index is being written, and when `most` seconds have passed. Returns whether it is done.
inline bool build_on(const std::vector<std::string>& command, Bytes limit, double most,
                     LargeProgress& progress) {
  const auto began = Timer::now();
  const MemoryGroup group("ann-build", limit, MemoryGroup::Swap::none);
  bool built = false;
  {
    LineProcess process(group.within(command), {});
    const pid_t builder = std::stoi(process.read_line());
    std::mutex mutex;
    std::condition_variable_any ended;
    const std::jthread watch([&](const std::stop_token& stop) {
      std::unique_lock lock(mutex);
      if (!ended.wait_for(lock, stop, std::chrono::duration<double>(most), [] { return false; }) &&
          !stop.stop_requested())
        kill(builder, SIGKILL);
    });
    std::string line;
    try {
      while (!built) {
        line = process.read_line();
        built = line == "built";
        const bool now = progress.killed == 0   ? line == "building shards 30%"
                         : progress.killed == 1 ? line.starts_with("writing")
                                                : false;
        if (now) kill(builder, SIGKILL);
      }
    } catch (const std::runtime_error&) {
      print_line(fmt::format("killed after {:.0f} s, at: {}", seconds_since(began), line));
      ++progress.killed;
    }
  }
  progress.seconds += seconds_since(began);
  progress.peak = std::max(
      progress.peak, static_cast<double>(group.peak().count) / static_cast<double>(group.limit().count));
  return built;
}

/// `seconds`: the builder is killed when so many have passed, and the next run goes on.
inline nlohmann::json run_large(const std::filesystem::path& folder, bool quick, std::size_t wanted,
                                double seconds, const LargeGraph& graph) {
  const std::size_t count = wanted > 0 ? wanted : quick ? 100'000 : 10'000'000;
  const Bytes whole{count * (128 + 33) * 4};
  const Bytes limit = wanted > 0 || quick ? std::max(whole * 31 / 100, Bytes{64U << 20}) : Bytes{2ULL << 30};
  AnnData data{fmt::format("large-{}", count), folder, {}, {}, {}};
  ann::Mixture mixture = large_mixture();
  mixture.count = 200;
  data.queries = ann::generate(mixture, 1);
  ann::write_vectors(data.file("-queries.fbin"), data.queries).value();
  const auto vectors = data.file(".fbin");
  if (!std::filesystem::exists(data.file(".ibin")))
    ann::write_neighbours(data.file(".ibin"), write_large(vectors, count, data.queries)).value();
  data.truth = ann::read_neighbours(data.file(".ibin")).value();
  const auto index = data.file("-index"), kept = data.file("-progress.json");
  LargeProgress progress = LargeProgress::read(kept);
  if (progress.killed == 0) std::filesystem::remove_all(index);
  const Bytes memory = limit - Bytes{24U << 20}, fast = limit / 2;
  const std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe"),
                                         "--build-large",
                                         vectors,
                                         index,
                                         std::to_string(memory.count),
                                         std::to_string(fast.count),
                                         std::to_string(graph.links),
                                         std::to_string(graph.ef_construction)};
  print_head(fmt::format("{} x 128 in {}", count, readable(limit)),
             "| builds killed | seconds in all | peak of the limit | recall@10 | mean, ms | p99, ms |");
  const auto began = Timer::now();
  for (bool built = false; !built;) {
    const double left = seconds - seconds_since(began);
    if (left <= 0) return {{"vectors", count}, {"built", false}, {"build_seconds", progress.seconds}};
    built = build_on(command, limit, left, progress);
    progress.write(kept);
  }
  std::filesystem::remove(kept);
  double recall = 0;
  std::uint32_t ef0 = 0;
  {
    const ann::Index opened =
        ann::Index::open(index, {.placement = ann::Placement::disk, .cache = fast / 8}).value();
    for (const std::uint32_t ef : {20U, 30U, 40U, 60U, 80U, 120U, 200U, 400U}) {
      ef0 = ef;
      recall = data.recall_of(
          opened.search(data.queries, kNeighbours, {.ef1 = 64, .ef0 = ef, .beam = 8, .ahead = 8}).value());
      if (recall >= 0.95) break;
    }
  }
  Contest contest("terrace", data, {"terrace", index, fmt::format("64 {} 8 {}", ef0, (fast / 8).count)},
                  limit, MemoryGroup::Swap::none);
  for (int i = 0; i < 3; ++i) contest.run(200);
  const nlohmann::json row = contest.summary();
  print_line(fmt::format("| {} | {:.0f} | {:.3f} | {:.3f} | {:.2f} | {:.2f} |", progress.killed,
                         progress.seconds, progress.peak, recall, contest.mean(),
                         row["p99_ms"].get<double>()));
  return {{"vectors", count},
          {"built", true},
          {"killed", progress.killed},
          {"build_seconds", progress.seconds},
          {"peak_of_limit", progress.peak},
          {"recall", recall},
          {"ef0", ef0},
          {"search", row}};
}

}  // namespace terrace::bench

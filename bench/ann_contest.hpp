// SPDX-License-Identifier: Apache-2.0
// A contestant of vector search is this program started once more, alone in a group of limited memory: it
// opens what was built before and answers `COUNT` with the times of so many queries.
#pragma once

#include <array>
#include <iostream>
#include <memory>
#include <numeric>
#include <sstream>

#include "ann_memory.hpp"
#include "line_process.hpp"
#include "memory_group.hpp"
#if __has_include(<annoylib.h>)
#define TERRACE_BENCH_ANNOY 1
// hnswlib defines macros of the same names, with which Annoy would define its functions twice.
#pragma push_macro("USE_AVX")
#pragma push_macro("USE_AVX512")
#undef USE_AVX
#undef USE_AVX512
#include <kissrandom.h>

#include <annoylib.h>
#pragma pop_macro("USE_AVX512")
#pragma pop_macro("USE_AVX")
#endif
#if defined(TERRACE_BENCH_FAISS)  // the build found it
#include <faiss/IndexFlat.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/index_io.h>
#endif

namespace terrace::bench {

/// Answers one query. Opened from files, with a setting that its kind understands.
struct Contestant {
  virtual ~Contestant() = default;
  virtual std::vector<ann::Neighbour> search(const ann::Vectors& queries, std::size_t at) = 0;
  /// What it asked the disk for so far, where it knows.
  virtual std::uint64_t reads() const { return 0; }
};

/// Pages of a file that are cached belong to the group that read them first, so that the next group would use
/// them for nothing. They are written and dropped before a contestant starts.
inline void drop_cached(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  fdatasync(file);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}
/// All files whose names begin with this one's, and those of a folder.
inline void drop_all_cached(const std::filesystem::path& path) {
  for (const auto& one : std::filesystem::directory_iterator(path.parent_path())) {
    if (one.is_regular_file() && one.path().native().starts_with(path.native())) drop_cached(one.path());
  }
  if (!std::filesystem::is_directory(path)) return;
  for (const auto& one : std::filesystem::directory_iterator(path)) drop_cached(one.path());
}

/// Setting: ef1, ef0, beam, cache in bytes.
class TerraceContestant final : public Contestant {
 public:
  TerraceContestant(const std::string& folder, const std::string& setting)
      : index_([&] {
          std::istringstream in(setting);
          std::uint64_t cache = 0;
          in >> options_.ef1 >> options_.ef0 >> options_.beam >> cache;
          options_.ahead = options_.beam;
          return ann::Index::open(folder, {.placement = ann::Placement::disk, .cache = Bytes{cache}}).value();
        }()) {}
  std::vector<ann::Neighbour> search(const ann::Vectors& queries, std::size_t at) override {
    return std::move(index_.search(one_of(queries, at), kNeighbours, options_).value()[0]);
  }
  std::uint64_t reads() const override { return index_.statistics().reads; }

 private:
  ann::SearchOptions options_;
  ann::Index index_;
};

/// Setting: ef.
class HnswContestant final : public Contestant {
 public:
  HnswContestant(const std::string& path, const std::string& setting, std::size_t dimension,
                 Rival::Lowest lowest)
      : rival_(path, dimension, lowest), ef_(std::stoul(setting)) {
    if (lowest == Rival::Lowest::read) drop_all_cached(path);
  }
  std::vector<ann::Neighbour> search(const ann::Vectors& queries, std::size_t at) override {
    return rival_.search(queries[at], kNeighbours, ef_);
  }

 private:
  Rival rival_;
  std::size_t ef_;
};

#if defined(TERRACE_BENCH_ANNOY)
/// Setting: how many nodes are looked at. The index is mapped.
class AnnoyContestant final : public Contestant {
 public:
  using Annoy = AnnoyIndex<std::int32_t, float, Euclidean, Kiss64Random, AnnoyIndexSingleThreadedBuildPolicy>;
  AnnoyContestant(const std::string& path, const std::string& setting, std::size_t dimension)
      : annoy_(static_cast<int>(dimension)), nodes_(std::stoi(setting)) {
    if (!annoy_.load(path.c_str())) throw std::runtime_error("Annoy cannot load " + path);
  }
  std::vector<ann::Neighbour> search(const ann::Vectors& queries, std::size_t at) override {
    std::vector<std::int32_t> ids;
    std::vector<float> distances;
    annoy_.get_nns_by_vector(queries[at].data(), kNeighbours, nodes_, &ids, &distances);
    std::vector<ann::Neighbour> found;
    for (std::size_t i = 0; i < ids.size(); ++i)
      found.push_back({static_cast<std::uint32_t>(ids[i]), distances[i] * distances[i]});
    return found;
  }
  static void build(const ann::Vectors& vectors, const std::filesystem::path& path, int trees) {
    Annoy annoy(static_cast<int>(vectors.dimension));
    for (std::size_t i = 0; i < vectors.count(); ++i)
      annoy.add_item(static_cast<std::int32_t>(i), vectors[i].data());
    annoy.build(trees);
    annoy.save(path.c_str());
  }

 private:
  Annoy annoy_;
  int nodes_;
};
#endif

#if defined(TERRACE_BENCH_FAISS)
/// Setting: lists that are probed. The lists are mapped: faiss on disk.
class FaissContestant final : public Contestant {
 public:
  FaissContestant(const std::string& path, const std::string& setting)
      : index_(faiss::read_index(path.c_str(), faiss::IO_FLAG_MMAP)) {
    dynamic_cast<faiss::IndexIVF&>(*index_).nprobe = std::stoul(setting);
  }
  std::vector<ann::Neighbour> search(const ann::Vectors& queries, std::size_t at) override {
    std::vector<faiss::Index::idx_t> ids(kNeighbours);
    std::vector<float> distances(kNeighbours);
    index_->search(1, queries[at].data(), kNeighbours, distances.data(), ids.data());
    std::vector<ann::Neighbour> found;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= 0) found.push_back({static_cast<std::uint32_t>(ids[i]), distances[i]});
    }
    return found;
  }
  /// Descriptors are bytes: faiss stores them as such, a quarter of the floats, and loses nothing.
  static void build(const ann::Vectors& vectors, const std::filesystem::path& path, std::size_t lists) {
    const auto dimension = static_cast<faiss::Index::idx_t>(vectors.dimension);
    faiss::IndexFlatL2 quantizer(dimension);
    faiss::IndexIVFScalarQuantizer index(&quantizer, vectors.dimension, lists,
                                         faiss::ScalarQuantizer::QT_8bit_direct, faiss::METRIC_L2, false);
    const auto learnt = static_cast<faiss::Index::idx_t>(std::min<std::size_t>(vectors.count(), 40 * lists));
    index.train(learnt, vectors.values.data());
    index.add(static_cast<faiss::Index::idx_t>(vectors.count()), vectors.values.data());
    faiss::write_index(&index, path.c_str());
  }

 private:
  std::unique_ptr<faiss::Index> index_;
};
#endif

inline std::unique_ptr<Contestant> open_contestant(const std::string& kind, const std::string& path,
                                                   const std::string& setting, std::size_t dimension) {
  if (kind == "terrace") return std::make_unique<TerraceContestant>(path, setting);
  if (kind == "hnswlib")
    return std::make_unique<HnswContestant>(path, setting, dimension, Rival::Lowest::read);
  if (kind == "mapped")
    return std::make_unique<HnswContestant>(path, setting, dimension, Rival::Lowest::mapped);
#if defined(TERRACE_BENCH_ANNOY)
  if (kind == "annoy") return std::make_unique<AnnoyContestant>(path, setting, dimension);
#endif
#if defined(TERRACE_BENCH_FAISS)
  if (kind == "faiss") return std::make_unique<FaissContestant>(path, setting);
#endif
  throw std::runtime_error("there is no contestant " + kind);
}

/// The process of a contestant: KIND PATH SETTING QUERIES TRUTH.
inline int contend(const std::vector<std::string>& words) {
  const ann::Vectors queries = ann::read_vectors(words.at(3)).value();
  const ann::Neighbours truth = ann::read_neighbours(words.at(4)).value();
  const auto contestant = open_contestant(words.at(0), words.at(1), words.at(2), queries.dimension);
  std::cout << "ready" << std::endl;
  std::size_t first = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const std::size_t count = std::stoul(line);
    const std::uint64_t reads = contestant->reads();
    ann::Neighbours found, wanted;
    const QueryTimes times = time_queries(queries, first, count, [&](std::size_t at) {
      found.push_back(contestant->search(queries, at));
      wanted.push_back(truth[at]);
    });
    first += count;
    std::cout << nlohmann::json{{"milliseconds", times.milliseconds},
                                {"reads", contestant->reads() - reads},
                                {"recall", ann::recall(found, wanted, kNeighbours)}}
              << std::endl;
  }
  return 0;
}

/// The other side of it.
class Contest {
 public:
  Contest(std::string name, const AnnData& data, const std::vector<std::string>& kind_path_setting,
          Bytes limit, MemoryGroup::Swap swap)
      : name_(std::move(name)),
        group_("ann-" + kind_path_setting[0], limit, swap),
        process_((drop_all_cached(kind_path_setting[1]), command(data, kind_path_setting)), {}) {
    if (process_.read_line() != "ready") throw std::runtime_error(name_ + " does not start");
  }
  /// A few at a time: one that is killed on the way is judged by what it answered before. Returns false where
  /// it took so long that it is not asked again.
  bool run(std::size_t queries) {
    const auto began = Timer::now();
    for (std::size_t asked = 0; asked < queries; asked += kAtOnce) {
      if (seconds_since(began) > kPatience) return false;
      const auto answer = nlohmann::json::parse(process_.ask(std::to_string(kAtOnce)));
      for (const double one : answer.at("milliseconds")) times_.milliseconds.push_back(one);
      recalls_.push_back(answer.at("recall"));
      reads_ += answer.at("reads").get<double>();
    }
    return true;
  }
  std::size_t answered() const { return times_.milliseconds.size(); }
  void forget() { times_ = {}, recalls_ = {}, reads_ = 0; }
  const std::string& name() const { return name_; }
  double mean() const { return times_.mean(); }
  nlohmann::json summary() const {
    return {{"name", name_},
            {"mean_ms", mean()},
            {"means_ms", means()},
            {"p50_ms", median(times_.milliseconds)},
            {"p99_ms", quantile(times_.milliseconds, 0.99)},
            {"recall",
             std::accumulate(recalls_.begin(), recalls_.end(), 0.0) / static_cast<double>(recalls_.size())},
            {"reads", reads_ / static_cast<double>(answered())},
            {"queries", answered()},
            {"group_limit_bytes", group_.limit().count},
            {"group_peak_bytes", group_.peak().count}};
  }

 private:
  static constexpr std::size_t kAtOnce = 10, kRound = 100;
  static constexpr double kPatience = 30;

  /// The least and the greatest of each hundred queries.
  std::array<double, 2> means() const {
    std::array<double, 2> both{mean(), mean()};
    const auto& all = times_.milliseconds;
    for (std::size_t at = 0; at + kRound <= all.size(); at += kRound) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at);
      const double one = std::accumulate(begin, begin + kRound, 0.0) / kRound;
      both = {std::min(both[0], one), std::max(both[1], one)};
    }
    return both;
  }

  std::vector<std::string> command(const AnnData& data, const std::vector<std::string>& words) const {
    std::vector<std::string> all{std::filesystem::read_symlink("/proc/self/exe"), "--contend"};
    all.insert(all.end(), words.begin(), words.end());
    all.push_back(data.file("-queries.fbin"));
    all.push_back(data.file(".ibin"));
    return group_.within(all);
  }

  std::string name_;
  MemoryGroup group_;
  LineProcess process_;
  QueryTimes times_;
  std::vector<double> recalls_;  ///< of runs of equal length
  double reads_ = 0;
};

}  // namespace terrace::bench

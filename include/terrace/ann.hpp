// SPDX-License-Identifier: Apache-2.0
// Vector search when the vectors do not fit in memory: HM-ANN (002 chapter 3) over the tiers of this library.
//
//   vectors     rows of floats of one dimension; a vector's id is its row
//   metric      what "near" means; distances are lower for nearer vectors
//   neighbour   an id and its distance to a query
//   index       a graph over the vectors in layers. Its lowest layer, with nearly all of the bytes, lies in a
//               slow tier; the layers above, with the vectors in them, lie in fast memory
//
// Plain data here may be copied freely; functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"
#include "terrace/tier.hpp"

namespace terrace::ann {

/// The distance is the squared Euclidean one, the negated inner product, or one minus the cosine of the
/// angle. A zero vector has the cosine 0 to every other.
enum class Metric : std::uint8_t { l2, inner_product, cosine };

/// `l2`, `ip`, `cosine`.
std::string_view to_string(Metric metric);
Result<Metric> parse_metric(std::string_view name);

struct Vectors {
  std::size_t dimension = 0;
  std::vector<float> values;  ///< row by row

  std::size_t count() const noexcept { return dimension == 0 ? 0 : values.size() / dimension; }
  std::span<const float> operator[](std::size_t row) const {
    return std::span(values).subspan(row * dimension, dimension);
  }
};

struct Neighbour {
  std::uint32_t id = 0;
  float distance = 0;
  bool operator==(const Neighbour&) const = default;
};

/// For each query its neighbours, nearest first; of equal distances the smaller id comes first.
using Neighbours = std::vector<std::vector<Neighbour>>;

/// More dimensions than this are refused.
inline constexpr std::size_t kMostDimensions = 65536;

/// Reads the format that the path's ending names: fvecs, bvecs, fbin, u8bin, npy (two dimensions, C order,
/// `<f4` or `|u1`), and, where the HDF5 library is installed, hdf5 as ann-benchmarks has it: `train`, or the
/// matrix that a colon and its name behind the ending choose (`glove.hdf5:test`). Fails with one sentence
/// where the file is missing, damaged, empty of dimensions, or holds what is no finite number; throws
/// EnvironmentError where the disk fails. `most`: no more rows than that.
Result<Vectors> read_vectors(const std::filesystem::path& path, std::size_t most = SIZE_MAX);

/// Writes fvecs, fbin or npy, by the path's ending. Fails and throws as replacing a file does.
Result<void> write_vectors(const std::filesystem::path& path, const Vectors& vectors);

/// The exact answer, by comparing every query with every vector in double precision: the oracle of recall.
/// `k` above the number of vectors gives them all. Fails as an index does on the same input.
Result<Neighbours> exact_neighbours(const Vectors& vectors, const Vectors& queries, std::size_t k,
                                    Metric metric, unsigned threads = 1);

/// The share of each query's k exact neighbours that were found; an answer as near as the k-th exact one
/// counts, whichever id it has. One where there is nothing to find. pre: as many answers as truths
double recall(const Neighbours& found, const Neighbours& truth, std::size_t k);

/// Which nodes an index keeps in fast memory: those with most links in either direction (HM-ANN), or any.
enum class Promotion : std::uint8_t { degree, random };

struct BuildOptions {
  Metric metric = Metric::l2;
  std::uint32_t links = 16;  ///< M: a node has at most 2M links in the lowest layer, from 2 to 1024
  std::uint32_t ef_construction = 100;  ///< candidates that an insertion looks at
  /// Fast memory for the index, its searchers and its cache: the upper layer is as large as it allows. Zero:
  /// no limit, and layers are those of HNSW.
  Bytes fast{0};
  unsigned searchers = 1;  ///< queries that will be searched at once, for whose data `fast` has room
  unsigned threads = 1;    ///< that will work on each of them
  /// Bytes that stand for a vector in fast memory while a search goes its way; answers are by vectors all the
  /// same. A disk is read far less with them: a quarter of the dimension does well. Zero: none.
  std::uint32_t code_bytes = 0;
  Bytes cache{0};  ///< part of `fast` that holds what is read of a disk
  Promotion promotion = Promotion::degree;
  unsigned builders = 1;  ///< shards that build_index() builds at once
  std::uint64_t seed = 1;
  std::function<void(std::string_view stage, double share)> progress = {};
};

/// Where the slow part of an opened index lies: all of it in memory or in a tier, or on the disk where it was
/// saved, past the page cache.
enum class Placement : std::uint8_t { memory, disk };

struct OpenOptions {
  Placement placement = Placement::memory;
  Tier* slow = nullptr;    ///< memory: an addressable tier that outlives the index; none: ordinary memory
  unsigned searchers = 1;  ///< queries that may be searched at once
  unsigned threads = 1;    ///< that work on each of them
  Bytes cache{0};          ///< disk: fast memory for what is read, over all searchers; zero: as it sees fit
};

/// How far a search looks. More finds more and takes longer.
struct SearchOptions {
  std::uint32_t ef1 = 1;  ///< candidates of the upper layer, all of which enter the lowest
  std::uint32_t ef0 =
      50;  ///< candidates of the lowest layer, at least k; 0: the upper layer's are the answer
  std::uint32_t beam = 1;    ///< nodes of the lowest layer whose links are followed in one step
  std::uint32_t shares = 1;  ///< into which the entry points are dealt out, each searched by itself: by as
                             ///< many threads as the index was opened with, to the same answer
  std::uint32_t ahead = 1;   ///< nodes whose links are brought while the upper layer is searched
};

/// What searches did so far, added up over all searchers.
struct SearchStatistics {
  std::uint64_t queries = 0;
  std::uint64_t fast_distances = 0, slow_distances = 0;
  /// Of each query's slow distances, those of the share that took most: what is waited for where every share
  /// has a thread.
  std::uint64_t longest_share = 0;
  std::uint64_t guesses = 0;                   ///< distances that codes told
  std::uint64_t fast_hops = 0, slow_hops = 0;  ///< nodes whose links were followed
  std::uint64_t slow_bytes = 0;                ///< used in slow memory, or read from the disk
  std::uint64_t reads = 0, rounds = 0;         ///< of a disk; a round is reads that were waited for together
  std::uint64_t hits = 0;                      ///< what the cache had
};

/// Bytes of an index, term by term of 002 section 3.3.4.
struct IndexSize {
  std::uint64_t vectors = 0;
  std::uint64_t nodes = 0;  ///< of which one stands for all vectors that are equal
  std::uint64_t promoted = 0;
  std::uint64_t removed = 0;
  std::size_t dimension = 0;
  Bytes fast_links, fast_elements, fast_ids;
  Bytes codes;  ///< of nodes that are not promoted, and what they are made with
  Bytes slow_links, slow_elements, slow_ids, slow_padding;
  Bytes marks;             ///< fast memory that says what was removed
  Bytes searchers, cache;  ///< fast memory for searching

  Bytes fast() const { return fast_links + fast_elements + fast_ids + codes + marks + searchers + cache; }
  Bytes slow() const { return slow_links + slow_elements + slow_ids + slow_padding; }
};

/// What a search should be.
struct TuneGoal {
  std::size_t k = 10;
  double recall = 0.95;    ///< of the k nearest, on average
  Seconds latency{1e-3};   ///< of a query, on average
  std::uint32_t beam = 0;  ///< as searches will have it; 0: chosen, with `ahead`, by where the index lies
  std::uint32_t shares = 1, ahead = 1;  ///< as searches will have them
};

/// How long work takes, as reference searches showed it (002 section 3.3.3).
struct WorkTimes {
  Seconds fast_distance{0}, slow_distance{0};

  /// Equation 3.1 with the distances that were counted in place of ef x C.
  Seconds predict(double fast_distances, double slow_distances) const {
    return fast_distance * fast_distances + slow_distance * slow_distances;
  }
};

/// A distance in DRAM and in Optane, as 002 section 3.4.3 measured them: those of machine `optane-hmann`.
inline constexpr WorkTimes kOptaneTimes{Seconds{183e-9}, Seconds{421e-9}};

/// Equation 3.1 as printed: `steps` is its C, `threads` its Thr.
Seconds equation_3_1(std::uint32_t ef1, std::uint32_t ef0, double steps, unsigned threads,
                     const WorkTimes& times);

struct TunedSearch {
  SearchOptions options;
  double recall = 0;     ///< of the learning queries
  Seconds predicted{0};  ///< mean of a query
  WorkTimes times;
  std::size_t settings = 0, in_time = 0,
              tried = 0;  ///< of the grid; kept by the model; whose recall was measured
};

/// An index over vectors. Move-only; searches may run in several threads, each alone with its searcher: more
/// threads than there are searchers wait for one another.
class Index {
 public:
  /// Builds in memory. The slow part goes to `slow`, which outlives the index, or stays in memory where there
  /// is none. Fails with a sentence on vectors that have no distance, on options out of their range and on
  /// memory too small; throws EnvironmentError where the tier fails. No vectors make an empty index.
  static Result<Index> build(Vectors vectors, const BuildOptions& options, Tier* slow = nullptr);

  /// Writes the index into a folder: its parts first, then a manifest that makes it one. Slow vectors of
  /// whole numbers from 0 to 255 are written as bytes. Fails with a sentence where the folder cannot be
  /// written to; throws EnvironmentError where the disk fails.
  Result<void> save(const std::filesystem::path& folder) const;
  /// Reads a saved index. What is missing, cut off, damaged or senseless is refused with a sentence.
  static Result<Index> open(const std::filesystem::path& folder, const OpenOptions& options = {});

  Index(Index&&) noexcept;
  Index& operator=(Index&&) noexcept;
  ~Index();

  /// Adds vectors, whose ids follow those that are there. They join the lowest layer; building anew promotes
  /// them, too. Searches wait meanwhile. Fails with a sentence on vectors of another dimension or without a
  /// distance, where the tier is full, and on an index that lies on a disk; then nothing was added. An empty
  /// index is built: nothing else may use it meanwhile.
  /// `ef_construction`: candidates that an insertion looks at.
  Result<void> add(Vectors vectors, std::uint32_t ef_construction = 100);

  /// Leaves a vector out of every answer from now on. It stays in the index and leads searches on their way,
  /// which look farther the more was removed. Fails on an id of no vector; removing one twice is no error.
  /// May run beside searches.
  Result<void> remove(std::uint32_t id);

  /// The nearest neighbours of each query, as many as k and what was not removed allow, the same wherever the
  /// index lies. Fails on queries of another dimension or without a distance; throws EnvironmentError where
  /// the slow part fails.
  Result<Neighbours> search(const Vectors& queries, std::size_t k, const SearchOptions& options) const;

  /// The fastest setting that keeps both promises for the learning queries, whose exact neighbours `truth`
  /// holds; recall with a margin for queries that were not learnt from. Fails with a sentence that names the
  /// best that can be had where none does.
  Result<TunedSearch> tune(const Vectors& queries, const Neighbours& truth, const TuneGoal& goal) const;

  IndexSize size() const;
  Metric metric() const;
  SearchStatistics statistics() const;

 private:
  struct Impl;
  explicit Index(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Builds an index of a file of vectors into a folder within `memory`, however large the file is. What fits
/// in memory at once is built in shards, which are joined. Killed at any time, it goes on where it was when
/// it is called again with the same file and options. Promotes by degree. Fails with a sentence on what
/// Index::build refuses, on memory too small, and where the folder cannot be written to; throws
/// EnvironmentError where the disk fails.
Result<void> build_index(const std::filesystem::path& data, const std::filesystem::path& folder,
                         const BuildOptions& options, Bytes memory);

/// Neighbours as big-ann-benchmarks stores them (.ibin): queries and k (uint32 each), all ids, all distances.
/// Fails with one sentence; throws EnvironmentError where the disk fails. pre for writing: as many for each
Result<Neighbours> read_neighbours(const std::filesystem::path& path);
Result<void> write_neighbours(const std::filesystem::path& path, const Neighbours& neighbours);

/// Reads all of a saved index and compares its checksums. Fails with a sentence at the first difference.
Result<void> verify_index(const std::filesystem::path& folder);

}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
// Searcher: one thread's search through an index (002 Algorithms 2 and 3).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ann/marks.hpp"
#include "ann/pool.hpp"
#include "ann/slow_part.hpp"
#include "ann/twins.hpp"
#include "ann/visited.hpp"

namespace terrace::ann {

/// The part of an index that lies in fast memory. Owned by the index, shared by its searchers.
struct FastPart {
  std::vector<LayerSize> layers;                  ///< the lowest first
  std::vector<std::vector<std::uint32_t>> links;  ///< by layer; that of layer 0 is empty
  std::vector<float> vectors;                     ///< of promoted nodes
  std::vector<std::uint32_t> ids;                 ///< of promoted nodes
  std::vector<Twin> twins;
  std::unique_ptr<Marks> marks;  ///< on vectors that were removed
  std::size_t dimension = 0;
  DistanceFunction distance = nullptr;

  std::uint64_t vectors_held() const { return nodes() + twins.size(); }
  std::uint64_t nodes() const { return layers.empty() ? 0 : layers[0].nodes; }
  std::uint64_t promoted() const { return ids.size(); }
  const float* vector_of(std::uint32_t node) const { return vectors.data() + std::size_t{node} * dimension; }
};

/// Work of a search, which no clock changes.
struct SearchCounts {
  std::uint64_t fast_distances = 0, slow_distances = 0;
  std::uint64_t fast_hops = 0, slow_hops = 0;  ///< nodes whose links were followed
};

class Searcher {
 public:
  /// Fast memory that one takes, in the index of so many nodes.
  static Bytes size_for(std::uint64_t nodes) { return Visited::size_for(nodes); }

  /// The fast part outlives it.
  Searcher(const FastPart& fast, std::unique_ptr<SlowPart> slow);

  /// min(k, vectors that were not removed) neighbours. Throws EnvironmentError where the slow part fails; it
  /// can be used again then. pre: the query is ready for the distance
  std::vector<Neighbour> search(const float* query, std::size_t k, const SearchOptions& options);

  const SearchCounts& counts() const { return counts_; }
  const SlowCounts& slow_counts() const { return slow_->counts(); }

 private:
  bool search_once(const float* query, std::size_t wanted, const SearchOptions& options);
  void search_fast(const float* query, std::size_t layer, std::size_t ef, std::uint32_t entry);
  void search_lowest(const float* query, std::size_t ef, const SearchOptions& options);
  void search_share(const float* query, std::size_t ef, const SearchOptions& options, std::size_t share,
                    std::size_t shares);
  bool choose_steps(std::uint32_t beam);
  void measure(const float* query);
  void scan(const float* query, std::size_t k);
  std::vector<Neighbour> answer(std::size_t k);
  void add_answers(std::span<const Candidate> some, std::vector<Neighbour>& found);
  void add_twins(std::size_t from, std::vector<Neighbour>& found) const;

  const FastPart& fast_;
  std::unique_ptr<SlowPart> slow_;
  Visited visited_;
  Pool pool_;
  std::vector<Candidate> entries_, merged_;
  std::vector<std::uint32_t> steps_, links_, fresh_, slow_nodes_;
  std::vector<float> distances_, slow_distances_;
  SearchCounts counts_;
};

}  // namespace terrace::ann

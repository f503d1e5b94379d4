// SPDX-License-Identifier: Apache-2.0
// Walk: one thread's way through the layers of an index (002 Algorithm 3).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ann/fast_part.hpp"
#include "ann/pool.hpp"
#include "ann/slow_part.hpp"
#include "ann/visited.hpp"

namespace terrace::ann {

/// Work of a search, which no clock changes.
struct SearchCounts {
  std::uint64_t fast_distances = 0, slow_distances = 0;
  std::uint64_t guesses = 0;                   ///< distances that codes told
  std::uint64_t fast_hops = 0, slow_hops = 0;  ///< nodes whose links were followed
};

/// A query, ready for the distance. Borrowed by whoever walks.
struct Query {
  const float* vector = nullptr;
  std::vector<float> table;  ///< what codes add to a distance, where there are codes
};

/// A share of the entry points, and how far to look from them.
struct LowestSearch {
  std::span<const Candidate> entries;
  std::size_t share = 0, shares = 1;  ///< entry i belongs to share i % shares
  std::size_t ef = 1;
  std::uint32_t beam = 1;
};

class Walk {
 public:
  /// Fast memory that one takes, in an index of so many nodes.
  static Bytes size_for(std::uint64_t nodes) { return Visited::size_for(nodes); }

  /// The fast part outlives it. `layout` is that of the slow part.
  Walk(const FastPart& fast, const SlowLayout& layout, std::unique_ptr<SlowPart> slow);

  /// Looks for the `ef` nearest nodes of a layer above the lowest. While it looks, it has the slow part bring
  /// what the `ahead` nearest need in the lowest layer. pre: layer > 0
  void search_layer(const Query& query, std::size_t layer, std::size_t ef, std::uint32_t entry,
                    std::uint32_t ahead);
  /// The same in the lowest layer. Throws EnvironmentError where the slow part fails.
  void search_lowest(const Query& query, const LowestSearch& search);
  /// The `most` nearest of all nodes, by looking at each.
  void scan(const Query& query, std::size_t most);

  /// What was found, nearest first, by exact distances.
  const std::vector<Candidate>& found() const { return guessed_ ? exact_.held() : pool_.held(); }
  /// Of each candidate its id.
  void ids(std::span<const Candidate> some, std::vector<std::uint32_t>& out);

  const SearchCounts& counts() const { return counts_; }
  SlowCounts slow_counts() const {
    SlowCounts counts = slow_->counts();
    counts.bytes += bytes_in_place_;
    return counts;
  }

 private:
  bool choose_steps(std::uint32_t beam);
  template <class Place>
  std::size_t gather(const Place& place);
  template <class Place>
  std::size_t step_in_place(const Query& query, const Place& place);
  void search_in_place(const Query& query, std::uint32_t beam);
  void follow_links();
  void measure(const Query& query);
  void step_by_distance(const Query& query);
  void step_by_codes(const Query& query);
  void confirm_steps(const Query& query);

  const FastPart& fast_;
  const SlowLayout layout_;
  std::unique_ptr<SlowPart> slow_;
  Visited visited_;
  Pool pool_;
  Pool exact_;            // where codes lead: what was found, by distances that are no guesses
  bool guessed_ = false;  // whether codes led the last search
  std::vector<std::uint32_t> steps_, links_, fresh_, slow_nodes_;
  std::vector<std::uint32_t> gathered_;  // room for what one step in place meets
  std::vector<float> distances_, slow_distances_;
  SearchCounts counts_;
  std::uint64_t bytes_in_place_ = 0;
};

}  // namespace terrace::ann

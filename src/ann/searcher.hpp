// SPDX-License-Identifier: Apache-2.0
// Searcher: one query at a time through an index (002 Algorithm 2), by one thread or by several together.
#pragma once

#include <memory>
#include <vector>

#include "ann/team.hpp"
#include "ann/walk.hpp"

namespace terrace::ann {

class Searcher {
 public:
  /// Fast memory that one of so many threads takes, in an index of so many nodes whose codes have so many
  /// bytes.
  static Bytes size_for(std::uint64_t nodes, unsigned threads, std::size_t code_bytes) {
    return Walk::size_for(nodes) * threads + Bytes{code_bytes * Codebook::kCentres * sizeof(float)};
  }

  /// One walk for each thread; the fast part outlives it. pre: there are walks
  Searcher(const FastPart& fast, std::vector<std::unique_ptr<Walk>> walks);

  /// min(k, vectors that were not removed) neighbours, the same whatever the number of threads. Throws
  /// EnvironmentError where the slow part fails; it can be used again then. pre: the query is ready for the
  /// distance
  std::vector<Neighbour> search(const float* query, std::size_t k, const SearchOptions& options);

  /// The `ef` nearest nodes, removed or not, for an insertion.
  const std::vector<Candidate>& nearest_nodes(const float* query, std::uint32_t ef);
  /// Of each candidate its id.
  void ids(std::span<const Candidate> some, std::vector<std::uint32_t>& out) { walks_[0]->ids(some, out); }

  SearchCounts counts() const;
  SlowCounts slow_counts() const;
  /// Slow distances of the share of each query that took most, added up.
  std::uint64_t longest_share() const { return longest_share_; }

 private:
  const std::vector<Candidate>& found() const { return shared_ ? merged_.held() : walks_[0]->found(); }
  bool search_once(std::size_t wanted, const SearchOptions& options);
  void search_lowest(const SearchOptions& options);
  void ready(const float* query);
  std::vector<Neighbour> answer(std::size_t k);
  void add_answers(std::span<const Candidate> some, std::vector<Neighbour>& found);
  void add_twins(std::size_t from, std::vector<Neighbour>& found) const;

  const FastPart& fast_;
  std::vector<std::unique_ptr<Walk>> walks_;
  Team team_;
  Query query_;
  std::vector<Candidate> entries_;
  std::vector<std::vector<Candidate>> by_share_;
  std::vector<std::uint64_t> distances_of_share_;
  std::uint64_t longest_share_ = 0;
  std::vector<Candidate> all_;
  Pool merged_;          // of all shares
  bool shared_ = false;  // whether the last search had several
  std::vector<std::uint32_t> ids_;
};

}  // namespace terrace::ann

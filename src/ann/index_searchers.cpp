// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ann/index.hpp"

namespace terrace::ann {

void Index::Impl::GiveBack::operator()(Searcher* searcher) const {
  {
    const std::lock_guard lock(impl->mutex_);
    impl->free_.push_back(searcher);
  }
  impl->returned_.notify_one();
}

Index::Impl::Borrowed Index::Impl::borrow() {
  std::unique_lock lock(mutex_);
  if (free_.empty() && all_.size() < searchers_most) {
    all_.push_back(open_searcher());
    free_.push_back(all_.back().get());
  }
  returned_.wait(lock, [&] { return !free_.empty(); });
  Searcher* searcher = free_.back();
  free_.pop_back();
  return {searcher, GiveBack{this}};
}

std::unique_ptr<Searcher> Index::Impl::open_searcher() {
  std::vector<std::unique_ptr<Walk>> walks;
  for (unsigned i = 0; i < threads; ++i)
    walks.push_back(std::make_unique<Walk>(fast, layout, open_slow_part()));
  return std::make_unique<Searcher>(fast, std::move(walks));
}

void Index::Impl::drop_searchers() {
  past_ = statistics();
  const std::lock_guard lock(mutex_);
  free_.clear();
  all_.clear();
  queues_.clear();
}

/// Waits until no search runs, for a searcher counts without a lock.
SearchStatistics Index::Impl::statistics() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return free_.size() == all_.size(); });
  SearchStatistics sum = past_;
  sum.queries = queries.load(std::memory_order_relaxed);
  for (const auto& searcher : all_) {
    const SearchCounts counts = searcher->counts();
    const SlowCounts slow = searcher->slow_counts();
    sum.fast_distances += counts.fast_distances, sum.slow_distances += counts.slow_distances;
    sum.longest_share += searcher->longest_share();
    sum.guesses += counts.guesses;
    sum.fast_hops += counts.fast_hops, sum.slow_hops += counts.slow_hops;
    sum.slow_bytes += slow.bytes, sum.reads += slow.reads, sum.rounds += slow.rounds, sum.hits += slow.hits;
  }
  return sum;
}

}  // namespace terrace::ann

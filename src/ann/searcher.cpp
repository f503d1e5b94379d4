// SPDX-License-Identifier: Apache-2.0
#include "ann/searcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ann/prefetch.hpp"
#include "terrace/error.hpp"

namespace terrace::ann {
namespace {

[[noreturn]] void fail_damaged(const char* what) {
  throw EnvironmentError(fmt::format("the index holds {}: it is damaged, build it again", what), {});
}

}  // namespace

Searcher::Searcher(const FastPart& fast, std::unique_ptr<SlowPart> slow)
    : fast_(fast), slow_(std::move(slow)), visited_(fast.nodes()) {}

std::vector<Neighbour> Searcher::search(const float* query, std::size_t k, const SearchOptions& options) {
  const std::uint64_t held = fast_.vectors_held(), removed = fast_.marks ? fast_.marks->count() : 0;
  const std::size_t wanted = std::min<std::uint64_t>(k, held - removed);
  if (wanted == 0) return {};
  // Among ever more that were removed, as many of the others are to be met.
  double scale = static_cast<double>(held) / static_cast<double>(held - removed);
  for (;;) {
    const auto scaled = [&](std::size_t ef) {
      return static_cast<std::uint32_t>(
          std::min(static_cast<double>(fast_.nodes()), std::ceil(static_cast<double>(ef) * scale)));
    };
    SearchOptions wider = options;
    wider.ef1 = scaled(std::max<std::size_t>(options.ef1, 1));
    if (options.ef0 > 0) wider.ef0 = scaled(std::max<std::size_t>(options.ef0, wanted));
    const bool all = search_once(query, scaled(wanted), wider);
    auto found = answer(wanted);
    // Others may be removed meanwhile: then fewer than were wanted are left, and all were seen.
    if (found.size() == wanted || all) return found;
    scale *= 2;
  }
}

/// Leaves at least `wanted` nodes in the pool, if there are. Returns whether it holds all there are.
bool Searcher::search_once(const float* query, std::size_t wanted, const SearchOptions& options) {
  std::uint32_t entry = 0;
  for (std::size_t layer = fast_.layers.size() - 1; layer > 1; --layer) {
    search_fast(query, layer, 1, entry);
    entry = pool_.held().front().id;
  }
  search_fast(query, 1, options.ef0 > 0 ? options.ef1 : std::max<std::size_t>(options.ef1, wanted), entry);
  if (options.ef0 > 0) search_lowest(query, options.ef0, options);
  // The upper layer alone may have too few; and not every graph had room for the links that lead to all
  // nodes.
  if (pool_.held().size() < wanted) scan(query, wanted);
  return pool_.held().size() == fast_.nodes();
}

void Searcher::search_fast(const float* query, std::size_t layer, std::size_t ef, std::uint32_t entry) {
  const std::size_t width = fast_.layers[layer].links, bytes = fast_.dimension * sizeof(float);
  visited_.start();
  pool_.reset(ef);
  visited_.meet(entry);
  pool_.insert({fast_.distance(query, fast_.vector_of(entry), fast_.dimension), entry});
  ++counts_.fast_distances;
  while (const Candidate* next = pool_.expand_next()) {
    const std::uint32_t* links = fast_.links[layer].data() + next->id * width;
    fresh_.clear();
    for (std::size_t i = 0; i < width && links[i] != kNoLink; ++i) {
      if (!visited_.meet(links[i])) continue;
      fresh_.push_back(links[i]);
      if (fresh_.size() <= kLookAhead) prefetch(fast_.vector_of(links[i]), bytes);
    }
    for (std::size_t i = 0; i < fresh_.size(); ++i) {
      if (i + kLookAhead < fresh_.size()) prefetch(fast_.vector_of(fresh_[i + kLookAhead]), bytes);
      const float here = fast_.distance(query, fast_.vector_of(fresh_[i]), fast_.dimension);
      if (pool_.may_keep(here)) pool_.insert({here, fresh_[i]});
    }
    ++counts_.fast_hops;
    counts_.fast_distances += fresh_.size();
  }
}

/// Algorithm 3: the entry points are dealt out to the shares; each share searches from its own, and knows all
/// of them; what they found is merged.
void Searcher::search_lowest(const float* query, std::size_t ef, const SearchOptions& options) {
  entries_ = pool_.held();
  const std::size_t shares = std::clamp<std::size_t>(options.shares, 1, entries_.size());
  merged_.clear();
  for (std::size_t share = 0; share < shares; ++share) {
    search_share(query, ef, options, share, shares);
    if (shares > 1) merged_.insert(merged_.end(), pool_.held().begin(), pool_.held().end());
  }
  if (shares == 1) return;
  std::sort(merged_.begin(), merged_.end(),
            [](const Candidate& a, const Candidate& b) { return a.nearer_than(b); });
  const auto end = std::unique(merged_.begin(), merged_.end(),
                               [](const Candidate& a, const Candidate& b) { return a.id == b.id; });
  pool_.reset(ef);
  for (auto one = merged_.begin(); one != end && pool_.held().size() < ef; ++one) pool_.insert(*one);
}

void Searcher::search_share(const float* query, std::size_t ef, const SearchOptions& options,
                            std::size_t share, std::size_t shares) {
  visited_.start();
  pool_.reset(ef);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    visited_.meet(entries_[i].id);
    pool_.insert({entries_[i].distance, entries_[i].id, i % shares != share});
  }
  while (choose_steps(std::max(options.beam, 1U))) {
    links_.clear();
    slow_->links(steps_, links_);
    counts_.slow_hops += steps_.size();
    fresh_.clear();
    for (const std::uint32_t link : links_) {
      if (visited_.meet(link)) fresh_.push_back(link);
    }
    measure(query);
    for (std::size_t i = 0; i < fresh_.size(); ++i) {
      if (pool_.may_keep(distances_[i])) pool_.insert({distances_[i], fresh_[i]});
    }
  }
}

bool Searcher::choose_steps(std::uint32_t beam) {
  steps_.clear();
  while (steps_.size() < beam) {
    const Candidate* next = pool_.expand_next();
    if (next == nullptr) break;
    steps_.push_back(next->id);
  }
  return !steps_.empty();
}

/// Distances of all fresh nodes: of promoted ones in fast memory, of the rest where the slow part is.
void Searcher::measure(const float* query) {
  slow_nodes_.clear();
  const std::size_t bytes = fast_.dimension * sizeof(float);
  for (const std::uint32_t node : fresh_) {
    if (node >= fast_.promoted())
      slow_nodes_.push_back(node);
    else
      prefetch(fast_.vector_of(node), bytes);
  }
  slow_distances_.resize(slow_nodes_.size());
  slow_->distances(query, slow_nodes_, slow_distances_.data());
  distances_.resize(fresh_.size());
  std::size_t slow = 0;
  for (std::size_t i = 0; i < fresh_.size(); ++i) {
    distances_[i] = fresh_[i] >= fast_.promoted()
                        ? slow_distances_[slow++]
                        : fast_.distance(query, fast_.vector_of(fresh_[i]), fast_.dimension);
  }
  // Vectors are finite when they are built in; those of a disk may have become anything.
  if (std::any_of(slow_distances_.begin(), slow_distances_.end(),
                  [](float here) { return std::isnan(here); }))
    fail_damaged("a vector with a value that is no number");
  counts_.slow_distances += slow;
  counts_.fast_distances += fresh_.size() - slow;
}

void Searcher::scan(const float* query, std::size_t k) {
  constexpr std::uint32_t kAtOnce = 256;
  pool_.reset(k);
  const auto nodes = static_cast<std::uint32_t>(fast_.nodes());
  for (std::uint32_t start = 0; start < nodes; start += kAtOnce) {
    fresh_.clear();
    for (std::uint32_t node = start; node < std::min(nodes, start + kAtOnce); ++node) fresh_.push_back(node);
    measure(query);
    for (std::size_t i = 0; i < fresh_.size(); ++i) pool_.insert({distances_[i], fresh_[i], true});
  }
}

std::vector<Neighbour> Searcher::answer(std::size_t k) {
  std::vector<Neighbour> found;
  const auto held = std::span<const Candidate>(pool_.held());
  // Farther ones are asked for their ids only where nearer ones were removed.
  for (std::size_t first = 0; first < held.size() && found.size() < k; first += k)
    add_answers(held.subspan(first, std::min(k, held.size() - first)), found);
  std::sort(found.begin(), found.end(), [](const Neighbour& a, const Neighbour& b) {
    return a.distance < b.distance || (a.distance == b.distance && a.id < b.id);
  });
  if (found.size() > k) found.resize(k);
  return found;
}

void Searcher::add_answers(std::span<const Candidate> some, std::vector<Neighbour>& found) {
  slow_nodes_.clear();
  for (const Candidate& one : some) {
    if (one.id >= fast_.promoted()) slow_nodes_.push_back(one.id);
  }
  links_.resize(slow_nodes_.size());
  slow_->ids(slow_nodes_, links_.data());
  if (std::any_of(links_.begin(), links_.end(), [&](std::uint32_t id) { return id >= fast_.vectors_held(); }))
    fail_damaged("an id of no vector");
  const std::size_t before = found.size();
  std::size_t slow = 0;
  for (const Candidate& one : some)
    found.push_back({one.id >= fast_.promoted() ? links_[slow++] : fast_.ids[one.id], one.distance});
  add_twins(before, found);
  if (!fast_.marks || fast_.marks->count() == 0) return;
  const auto removed = std::remove_if(found.begin() + static_cast<std::ptrdiff_t>(before), found.end(),
                                      [&](const Neighbour& one) { return fast_.marks->marked(one.id); });
  found.erase(removed, found.end());
}

void Searcher::add_twins(std::size_t from, std::vector<Neighbour>& found) const {
  if (fast_.twins.empty()) return;
  const std::size_t nodes = found.size();
  for (std::size_t i = from; i < nodes; ++i) {
    const Neighbour one = found[i];
    auto twin = std::lower_bound(fast_.twins.begin(), fast_.twins.end(), one.id,
                                 [](const Twin& a, std::uint32_t id) { return a.id < id; });
    for (; twin != fast_.twins.end() && twin->id == one.id; ++twin)
      found.push_back({twin->other, one.distance});
  }
}

}  // namespace terrace::ann

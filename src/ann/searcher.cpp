// SPDX-License-Identifier: Apache-2.0
#include "ann/searcher.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace terrace::ann {

Searcher::Searcher(const FastPart& fast, std::vector<std::unique_ptr<Walk>> walks)
    : fast_(fast), walks_(std::move(walks)), team_(static_cast<unsigned>(walks_.size())) {}

void Searcher::ready(const float* query) {
  query_.vector = query;
  if (fast_.book.parts > 0) fast_.book.make_table(fast_.metric, query, query_.table);
}

std::vector<Neighbour> Searcher::search(const float* query, std::size_t k, const SearchOptions& options) {
  const std::uint64_t held = fast_.vectors_held(), removed = fast_.marks ? fast_.marks->count() : 0;
  const std::size_t wanted = std::min<std::uint64_t>(k, held - removed);
  if (wanted == 0) return {};
  ready(query);
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
    const bool all = search_once(scaled(wanted), wider);
    auto answers = answer(wanted);
    // Others may be removed meanwhile: then fewer than were wanted are left, and all were seen.
    if (answers.size() == wanted || all) return answers;
    scale *= 2;
  }
}

const std::vector<Candidate>& Searcher::nearest_nodes(const float* query, std::uint32_t ef) {
  ready(query);
  SearchOptions options;
  options.ef0 = static_cast<std::uint32_t>(std::min<std::uint64_t>(ef, fast_.nodes()));
  search_once(1, options);
  return found();
}

/// Finds at least `wanted` nodes, if there are. Returns whether it found all there are.
bool Searcher::search_once(std::size_t wanted, const SearchOptions& options) {
  shared_ = false;
  Walk& first = *walks_[0];
  std::uint32_t entry = 0;
  for (std::size_t layer = fast_.layers.size() - 1; layer > 1; --layer) {
    first.search_layer(query_, layer, 1, entry, 0);
    entry = first.found().front().id;
  }
  const bool lowest = options.ef0 > 0;
  first.search_layer(query_, 1, lowest ? options.ef1 : std::max<std::size_t>(options.ef1, wanted), entry,
                     lowest && options.shares <= 1 ? options.ahead : 0);
  if (lowest) search_lowest(options);
  // The upper layer alone may have too few; and not every graph had room for the links that lead to all
  // nodes.
  if (found().size() < wanted) {
    shared_ = false;
    first.scan(query_, wanted);
  }
  return found().size() == fast_.nodes();
}

/// Algorithm 3: the entry points are dealt out to the shares; each share searches from its own, and knows all
/// of them; what they found is merged. Which thread searches a share changes nothing.
void Searcher::search_lowest(const SearchOptions& options) {
  entries_ = walks_[0]->found();
  const std::size_t shares = std::clamp<std::size_t>(options.shares, 1, entries_.size());
  distances_of_share_.resize(shares);
  const auto search = [&](Walk& walk, std::size_t share) {
    const std::uint64_t before = walk.counts().slow_distances;
    walk.search_lowest(query_, {entries_, share, shares, options.ef0, options.beam});
    distances_of_share_[share] = walk.counts().slow_distances - before;
  };
  if (shares == 1) {
    search(*walks_[0], 0);
    longest_share_ += distances_of_share_[0];
    return;
  }
  by_share_.resize(shares);
  team_.run([&](unsigned member) {
    for (std::size_t share = member; share < shares; share += walks_.size()) {
      search(*walks_[member], share);
      by_share_[share] = walks_[member]->found();
    }
  });
  longest_share_ += *std::max_element(distances_of_share_.begin(), distances_of_share_.end());
  all_.clear();
  for (const auto& share : by_share_) all_.insert(all_.end(), share.begin(), share.end());
  std::sort(all_.begin(), all_.end(),
            [](const Candidate& a, const Candidate& b) { return a.nearer_than(b); });
  const auto end = std::unique(all_.begin(), all_.end(),
                               [](const Candidate& a, const Candidate& b) { return a.id == b.id; });
  merged_.reset(options.ef0);
  for (auto one = all_.begin(); one != end && merged_.held().size() < options.ef0; ++one)
    merged_.insert(*one);
  shared_ = true;
}

std::vector<Neighbour> Searcher::answer(std::size_t k) {
  std::vector<Neighbour> answers;
  const auto held = std::span<const Candidate>(found());
  // Farther ones are asked for their ids only where nearer ones were removed.
  for (std::size_t first = 0; first < held.size() && answers.size() < k; first += k)
    add_answers(held.subspan(first, std::min(k, held.size() - first)), answers);
  std::sort(answers.begin(), answers.end(), [](const Neighbour& a, const Neighbour& b) {
    return a.distance < b.distance || (a.distance == b.distance && a.id < b.id);
  });
  if (answers.size() > k) answers.resize(k);
  return answers;
}

void Searcher::add_answers(std::span<const Candidate> some, std::vector<Neighbour>& answers) {
  walks_[0]->ids(some, ids_);
  const std::size_t before = answers.size();
  for (std::size_t i = 0; i < some.size(); ++i) answers.push_back({ids_[i], some[i].distance});
  add_twins(before, answers);
  if (!fast_.marks || fast_.marks->count() == 0) return;
  const auto removed = std::remove_if(answers.begin() + static_cast<std::ptrdiff_t>(before), answers.end(),
                                      [&](const Neighbour& one) { return fast_.marks->marked(one.id); });
  answers.erase(removed, answers.end());
}

void Searcher::add_twins(std::size_t from, std::vector<Neighbour>& answers) const {
  if (fast_.twins.empty()) return;
  const std::size_t nodes = answers.size();
  for (std::size_t i = from; i < nodes; ++i) {
    const Neighbour one = answers[i];
    auto twin = std::lower_bound(fast_.twins.begin(), fast_.twins.end(), one.id,
                                 [](const Twin& a, std::uint32_t id) { return a.id < id; });
    for (; twin != fast_.twins.end() && twin->id == one.id; ++twin)
      answers.push_back({twin->other, one.distance});
  }
}

SearchCounts Searcher::counts() const {
  SearchCounts sum;
  for (const auto& walk : walks_) {
    const SearchCounts& one = walk->counts();
    sum.fast_distances += one.fast_distances, sum.slow_distances += one.slow_distances;
    sum.guesses += one.guesses;
    sum.fast_hops += one.fast_hops, sum.slow_hops += one.slow_hops;
  }
  return sum;
}

SlowCounts Searcher::slow_counts() const {
  SlowCounts sum;
  for (const auto& walk : walks_) {
    const SlowCounts one = walk->slow_counts();
    sum.bytes += one.bytes, sum.reads += one.reads, sum.rounds += one.rounds, sum.hits += one.hits;
  }
  return sum;
}

}  // namespace terrace::ann

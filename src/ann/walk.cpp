// SPDX-License-Identifier: Apache-2.0
#include "ann/walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ann/prefetch.hpp"
#include "ann/slow_links.hpp"
#include "terrace/error.hpp"

namespace terrace::ann {
namespace {

/// Vectors are finite when they are built in; those of a disk may have become anything.
[[noreturn]] void refuse_numbers() {
  throw EnvironmentError(
      "the index holds a vector with a value that is no number: it is damaged, build it again", {});
}
void check_numbers(std::span<const float> distances) {
  if (std::any_of(distances.begin(), distances.end(), [](float here) { return std::isnan(here); }))
    refuse_numbers();
}

/// A layer above the lowest: all of it lies in fast memory, and its links were checked when it was opened.
struct UpperPlace {
  const FastPart& fast;
  const std::uint32_t* all;
  std::size_t width;

  const std::uint32_t* links(std::uint32_t node) const { return all + node * width; }
  const float* vector(std::uint32_t node) const { return fast.vector_of(node); }
  static bool is_slow(std::uint32_t /*node*/) { return false; }
  static void check(std::uint32_t /*node*/, std::uint32_t /*link*/) {}
};

/// The lowest layer, in memory that is read in place.
struct LowestPlace {
  LowestPlace(const FastPart& fast_part, const SlowLayout& layout, const std::byte* memory)
      : fast(fast_part),
        lists(memory),
        records(memory + layout.records_at()),
        list_bytes(layout.list_bytes().count),
        stride(layout.stride().count),
        promoted(static_cast<std::uint32_t>(layout.promoted())),
        nodes(layout.nodes()),
        width(layout.links()) {}

  const FastPart& fast;
  const std::byte *lists, *records;
  std::size_t list_bytes, stride;
  std::uint32_t promoted;
  std::uint64_t nodes;
  std::size_t width;

  const std::byte* record(std::uint32_t node) const {
    return records + std::size_t{node - promoted} * stride;
  }
  const std::uint32_t* links(std::uint32_t node) const {
    const std::byte* list = node < promoted ? lists + node * list_bytes : record(node);
    return reinterpret_cast<const std::uint32_t*>(list);
  }
  const float* vector(std::uint32_t node) const {
    if (node < promoted) return fast.vector_of(node);
    return reinterpret_cast<const float*>(record(node) + list_bytes);
  }
  bool is_slow(std::uint32_t node) const { return node >= promoted; }
  void check(std::uint32_t node, std::uint32_t link) const { check_link(node, link, nodes); }
};

}  // namespace

Walk::Walk(const FastPart& fast, const SlowLayout& layout, std::unique_ptr<SlowPart> slow)
    : fast_(fast), layout_(layout), slow_(std::move(slow)), visited_(fast.nodes()) {}

/// Writes the nodes that the steps' links lead to and no other did before; returns how many there are.
template <class Place>
std::size_t Walk::gather(const Place& place) {
  if (gathered_.size() < steps_.size() * place.width) gathered_.resize(steps_.size() * place.width);
  std::uint32_t* out = gathered_.data();
  for (const std::uint32_t node : steps_) {
    const std::uint32_t* links = place.links(node);
    for (std::size_t i = 0; i < place.width && links[i] != kNoLink; ++i) {
      place.check(node, links[i]);
      // Whether it is new changes from link to link too often for a branch.
      *out = links[i];
      out += visited_.meet(links[i]) ? 1 : 0;
    }
  }
  return static_cast<std::size_t>(out - gathered_.data());
}

/// Looks at what the steps' links lead to; returns how many of the distances were to vectors in slow memory.
template <class Place>
std::size_t Walk::step_in_place(const Query& query, const Place& place) {
  const std::size_t count = gather(place), bytes = fast_.dimension * sizeof(float);
  // Unless something nearer is found now, this is the next step.
  if (const Candidate* next = pool_.next())
    prefetch(place.links(next->id), place.width * sizeof(std::uint32_t));
  for (std::size_t i = 0; i < std::min(kLookAhead, count); ++i) prefetch(place.vector(gathered_[i]), bytes);
  std::size_t slow = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kLookAhead < count) prefetch(place.vector(gathered_[i + kLookAhead]), bytes);
    const std::uint32_t node = gathered_[i];
    const float here = fast_.distance(query.vector, place.vector(node), fast_.dimension);
    slow += place.is_slow(node) ? 1 : 0;
    if (std::isnan(here)) [[unlikely]]
      refuse_numbers();
    if (pool_.may_keep(here)) pool_.insert({here, node});
  }
  counts_.fast_distances += count - slow;
  counts_.slow_distances += slow;
  return slow;
}

void Walk::search_layer(const Query& query, std::size_t layer, std::size_t ef, std::uint32_t entry,
                        std::uint32_t ahead) {
  const UpperPlace place{fast_, fast_.links[layer].data(), fast_.layers[layer].links};
  guessed_ = false;
  visited_.start();
  pool_.reset(ef);
  visited_.meet(entry);
  pool_.insert({fast_.distance(query.vector, fast_.vector_of(entry), fast_.dimension), entry});
  ++counts_.fast_distances;
  while (choose_steps(1)) {
    step_in_place(query, place);
    ++counts_.fast_hops;
    // Once the nearer half had its turn, the nearest hardly change any more.
    if (ahead == 0 || pool_.expanded_ahead() < (ef + 1) / 2) continue;
    steps_.clear();
    for (std::size_t i = 0; i < std::min<std::size_t>(ahead, pool_.expanded_ahead()); ++i)
      steps_.push_back(pool_.held()[i].id);
    slow_->prefetch(steps_);
    ahead = 0;
  }
}

void Walk::search_in_place(const Query& query, std::uint32_t beam) {
  const LowestPlace place(fast_, layout_, slow_->in_place());
  const std::size_t vector_bytes = fast_.dimension * sizeof(float);
  while (choose_steps(beam)) {
    const std::size_t slow = step_in_place(query, place);
    counts_.slow_hops += steps_.size();
    bytes_in_place_ += steps_.size() * place.list_bytes + slow * vector_bytes;
  }
}

void Walk::search_lowest(const Query& query, const LowestSearch& search) {
  guessed_ = fast_.book.parts > 0;
  visited_.start();
  pool_.reset(search.ef);
  exact_.reset(search.ef);
  for (std::size_t i = 0; i < search.entries.size(); ++i) {
    const Candidate& entry = search.entries[i];
    visited_.meet(entry.id);
    pool_.insert({entry.distance, entry.id, i % search.shares != search.share});
    if (guessed_) exact_.insert({entry.distance, entry.id, true});
  }
  const std::uint32_t beam = std::max(search.beam, 1U);
  if (!guessed_ && slow_->in_place() != nullptr) return search_in_place(query, beam);
  while (choose_steps(beam)) guessed_ ? step_by_codes(query) : step_by_distance(query);
}

bool Walk::choose_steps(std::uint32_t beam) {
  steps_.clear();
  while (steps_.size() < beam) {
    const Candidate* next = pool_.expand_next();
    if (next == nullptr) break;
    steps_.push_back(next->id);
  }
  return !steps_.empty();
}

/// Leaves in fresh_ the nodes that the steps' links lead to and no other did before.
void Walk::follow_links() {
  links_.clear();
  slow_->links(steps_, links_);
  counts_.slow_hops += steps_.size();
  fresh_.clear();
  for (const std::uint32_t link : links_) {
    if (visited_.meet(link)) fresh_.push_back(link);
  }
}

void Walk::step_by_distance(const Query& query) {
  follow_links();
  // Unless something nearer is found now, this is the next step.
  if (const Candidate* next = pool_.next()) slow_->expect(next->id);
  measure(query);
  for (std::size_t i = 0; i < fresh_.size(); ++i) {
    if (pool_.may_keep(distances_[i])) pool_.insert({distances_[i], fresh_[i]});
  }
}

void Walk::step_by_codes(const Query& query) {
  follow_links();
  confirm_steps(query);
  for (std::size_t i = 0; i < fresh_.size(); ++i) {
    const std::uint32_t node = fresh_[i];
    const bool promoted = node < fast_.promoted();
    const float here = promoted ? fast_.distance(query.vector, fast_.vector_of(node), fast_.dimension)
                                : Codebook::guess(query.table, fast_.code_of(node), fast_.book.parts);
    ++(promoted ? counts_.fast_distances : counts_.guesses);
    if (pool_.may_keep(here)) pool_.insert({here, node});
    if (promoted && exact_.may_keep(here)) exact_.insert({here, node, true});
  }
}

/// What was read with the links of the steps' nodes: their vectors.
void Walk::confirm_steps(const Query& query) {
  slow_nodes_.clear();
  for (const std::uint32_t node : steps_) {
    if (node >= fast_.promoted()) slow_nodes_.push_back(node);
  }
  slow_distances_.resize(slow_nodes_.size());
  slow_->distances(query.vector, slow_nodes_, slow_distances_.data());
  check_numbers(slow_distances_);
  counts_.slow_distances += slow_nodes_.size();
  for (std::size_t i = 0; i < slow_nodes_.size(); ++i)
    exact_.insert({slow_distances_[i], slow_nodes_[i], true});
}

/// Distances of all fresh nodes: of promoted ones in fast memory, of the rest where the slow part is.
void Walk::measure(const Query& query) {
  slow_nodes_.clear();
  const std::size_t bytes = fast_.dimension * sizeof(float);
  for (const std::uint32_t node : fresh_) {
    if (node >= fast_.promoted())
      slow_nodes_.push_back(node);
    else
      prefetch(fast_.vector_of(node), bytes);
  }
  slow_distances_.resize(slow_nodes_.size());
  slow_->distances(query.vector, slow_nodes_, slow_distances_.data());
  check_numbers(slow_distances_);
  distances_.resize(fresh_.size());
  std::size_t slow = 0;
  for (std::size_t i = 0; i < fresh_.size(); ++i) {
    distances_[i] = fresh_[i] >= fast_.promoted()
                        ? slow_distances_[slow++]
                        : fast_.distance(query.vector, fast_.vector_of(fresh_[i]), fast_.dimension);
  }
  counts_.slow_distances += slow;
  counts_.fast_distances += fresh_.size() - slow;
}

void Walk::scan(const Query& query, std::size_t most) {
  constexpr std::uint32_t kAtOnce = 256;
  guessed_ = false;
  pool_.reset(most);
  const auto nodes = static_cast<std::uint32_t>(fast_.nodes());
  for (std::uint32_t start = 0; start < nodes; start += kAtOnce) {
    fresh_.clear();
    for (std::uint32_t node = start; node < std::min(nodes, start + kAtOnce); ++node) fresh_.push_back(node);
    measure(query);
    for (std::size_t i = 0; i < fresh_.size(); ++i) pool_.insert({distances_[i], fresh_[i], true});
  }
}

void Walk::ids(std::span<const Candidate> some, std::vector<std::uint32_t>& out) {
  slow_nodes_.clear();
  for (const Candidate& one : some) {
    if (one.id >= fast_.promoted()) slow_nodes_.push_back(one.id);
  }
  links_.resize(slow_nodes_.size());
  slow_->ids(slow_nodes_, links_.data());
  if (std::any_of(links_.begin(), links_.end(), [&](std::uint32_t id) { return id >= fast_.vectors_held(); }))
    throw EnvironmentError("the index holds an id of no vector: it is damaged, build it again", {});
  out.clear();
  std::size_t slow = 0;
  for (const Candidate& one : some)
    out.push_back(one.id >= fast_.promoted() ? links_[slow++] : fast_.ids[one.id]);
}

}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
// Adding vectors to an index in memory: HNSW's insertion into the lowest layer, through the searcher.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ann/choose.hpp"
#include "ann/index.hpp"
#include "ann/prepare.hpp"

namespace terrace::ann {
namespace {

/// Nodes of the lowest layer where they lie, promoted or not.
class Inserter {
 public:
  Inserter(FastPart& fast, const SlowLayout& layout, std::byte* memory, Searcher& searcher, std::uint32_t ef)
      : fast_(fast), layout_(layout), memory_(memory), searcher_(searcher), ef_(ef) {}

  /// Makes `vector` that node, linked with others; or returns a node whose vector is equal, and does nothing.
  std::uint32_t insert(std::uint32_t node, std::uint32_t id, const float* vector) {
    const auto& found = searcher_.nearest_nodes(vector, ef_);
    for (const Candidate& one : found) {
      if (one.distance > found.front().distance) break;
      if (std::equal(vector, vector + fast_.dimension, vector_of(one.id))) return one.id;
    }
    chosen_.clear();
    for (const Candidate& one : found) chosen_.push_back({one.id, one.distance});
    choose(chosen_, layout_.links() / 2);
    std::byte* record = memory_ + layout_.place(node);
    std::memcpy(record + layout_.id_at().count, &id, sizeof id);
    std::memcpy(record + layout_.vector_at().count, vector, fast_.dimension * sizeof(float));
    write_links(node, chosen_);
    if (fast_.book.parts > 0) {
      fast_.codes.resize((node + 1 - fast_.promoted()) * fast_.book.parts);
      fast_.book.encode(vector, fast_.codes.data() + (node - fast_.promoted()) * fast_.book.parts);
    }
    for (const Link& one : chosen_) add_link(one.node, {node, one.distance});
    return node;
  }

 private:
  const float* vector_of(std::uint32_t node) const {
    if (node < fast_.promoted()) return fast_.vector_of(node);
    return reinterpret_cast<const float*>(memory_ + layout_.place(node) + layout_.vector_at().count);
  }
  float between(std::uint32_t a, std::uint32_t b) const {
    return fast_.distance(vector_of(a), vector_of(b), fast_.dimension);
  }
  void choose(std::vector<Link>& sorted, std::size_t most) {
    choose_links(sorted, most, kept_, [this](std::uint32_t a, std::uint32_t b) { return between(a, b); });
  }

  std::uint32_t* links_of(std::uint32_t node) {
    return reinterpret_cast<std::uint32_t*>(memory_ + layout_.place(node));
  }
  void write_links(std::uint32_t node, const std::vector<Link>& links) {
    std::uint32_t* out = links_of(node);
    std::fill_n(out, layout_.links(), kNoLink);
    for (const Link& one : links) *out++ = one.node;
  }

  void add_link(std::uint32_t from, Link link) {
    std::uint32_t* links = links_of(from);
    std::uint32_t* end = links + layout_.links();
    if (std::uint32_t* free = std::find(links, end, kNoLink); free != end) {
      *free = link.node;
      return;
    }
    shrunk_.assign(1, link);
    for (const std::uint32_t* one = links; one != end; ++one) shrunk_.push_back({*one, between(from, *one)});
    sort_links(shrunk_);
    choose(shrunk_, layout_.links());
    write_links(from, shrunk_);
  }

  FastPart& fast_;
  const SlowLayout& layout_;
  std::byte* const memory_;
  Searcher& searcher_;
  const std::uint32_t ef_;
  std::vector<Link> chosen_, shrunk_, kept_;
};

Result<void> check_addition(const Vectors& vectors, const FastPart& fast, std::uint32_t ef) {
  if (const auto good = check_vectors(vectors, fast.metric, "vector"); !good) return good.error();
  if (vectors.dimension != fast.dimension)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("vectors of {} dimensions cannot be added to an index of {}", vectors.dimension,
                             fast.dimension)};
  if (ef < 1) return Error{ErrorCode::invalid_argument, "ef_construction is at least 1"};
  if (vectors.count() >= kNoLink - fast.vectors_held())
    return Error{ErrorCode::invalid_argument, fmt::format("an index holds fewer than {} vectors", kNoLink)};
  return {};
}

}  // namespace

Result<void> Index::Impl::add(Vectors vectors, std::uint32_t ef_construction) {
  const std::lock_guard alone(changing);
  if (layout.unit().count > 0)
    return Error{ErrorCode::unsupported,
                 "vectors cannot be added to an index on a disk: open it in memory, add them and save it"};
  if (const auto good = check_addition(vectors, fast, ef_construction); !good) return good.error();
  normalise(vectors.values, vectors.dimension, metric);
  const auto before = static_cast<std::uint32_t>(fast.nodes());
  const auto first_id = static_cast<std::uint32_t>(fast.vectors_held());
  // Room for all, in case none equals another; what is left over is given back.
  if (const auto room = resize(before + vectors.count()); !room) return room.error();
  std::uint32_t node = before;
  {
    const auto searcher = borrow();
    Inserter inserter(fast, layout, slow_memory(), *searcher, ef_construction);
    for (std::uint32_t i = 0; i < vectors.count(); ++i) {
      const std::uint32_t same = inserter.insert(node, first_id + i, vectors[i].data());
      if (same == node)
        ++node;
      else
        add_twin(*searcher, same, first_id + i);
    }
  }
  resize(node).value();
  fast.marks = std::make_unique<Marks>(*fast.marks, fast.vectors_held());
  return {};
}

/// Twins are kept in the order of their ids; the new one has the largest of all.
void Index::Impl::add_twin(Searcher& searcher, std::uint32_t node, std::uint32_t other) {
  const Candidate candidate{0, node};
  std::vector<std::uint32_t> id;
  searcher.ids(std::span(&candidate, 1), id);
  const auto place = std::upper_bound(fast.twins.begin(), fast.twins.end(), id[0],
                                      [](std::uint32_t value, const Twin& twin) { return value < twin.id; });
  fast.twins.insert(place, {id[0], other});
}

Result<void> Index::Impl::resize(std::uint64_t nodes) {
  drop_searchers();
  std::vector<LayerSize> layers = fast.layers;
  layers[0].nodes = nodes;
  const SlowLayout before = layout;
  layout = SlowLayout(layers, fast.dimension, false);
  if (const auto room = reserve(); !room) {
    layout = before;
    return room;
  }
  fast.layers = std::move(layers);
  return {};
}

Result<void> Index::add(Vectors vectors, std::uint32_t ef_construction) {
  if (vectors.count() == 0) return check_addition(vectors, impl_->fast, ef_construction);
  if (impl_->fast.nodes() > 0) return impl_->add(std::move(vectors), ef_construction);
  // What was never built is built now.
  if (const auto good = check_addition(vectors, impl_->fast, ef_construction); !good) return good.error();
  BuildOptions options = impl_->options;
  options.ef_construction = ef_construction;
  auto built = build(std::move(vectors), options, impl_->tier);
  if (!built) return built.error();
  impl_ = std::move(built->impl_);
  return {};
}

}  // namespace terrace::ann

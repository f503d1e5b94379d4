// SPDX-License-Identifier: Apache-2.0
#include "ann/index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ann/build_options.hpp"
#include "ann/index_parts.hpp"
#include "ann/prepare.hpp"
#include "base/check.hpp"

namespace terrace::ann {
namespace {

Error refuse(const std::string& sentence) { return {ErrorCode::invalid_argument, sentence}; }

Graph build_graph(const Rows& rows, std::uint64_t promoted, const BuildOptions& options) {
  HnswOptions hnsw{options.links, options.ef_construction, options.seed, {}};
  const auto telling = [&](std::string_view stage) {
    return [&options, stage](double share) {
      if (options.progress) options.progress(stage, share);
    };
  };
  hnsw.progress = telling("inserting");
  Graph graph = build_hnsw(rows, hnsw);
  if (options.fast.count == 0 && graph.layers.size() > 1) return graph;
  hnsw.progress = telling("promoting");
  const auto order = options.promotion == Promotion::degree ? PromotionOrder::degree : PromotionOrder::random;
  return promote(std::move(graph), rows, promoted, order, hnsw);
}

}  // namespace

Result<Index> Index::build(Vectors vectors, const BuildOptions& options, Tier* slow) {
  if (const auto good = check_options(options, vectors.dimension); !good) return good.error();
  if (const auto good = check_vectors(vectors, options.metric, "vector"); !good) return good.error();
  if (vectors.count() >= kNoLink) return refuse(fmt::format("an index holds fewer than {} vectors", kNoLink));
  normalise(vectors.values, vectors.dimension, options.metric);
  Distinct distinct = keep_distinct(vectors);
  make_huge(vectors.values.data(), vectors.values.size() * sizeof(float));
  const Rows rows{vectors.values.data(), vectors.dimension,
                  vectors.count(),       distance_function(options.metric),
                  distinct.ids.data(),   options.metric};
  auto impl = std::make_unique<Impl>();
  impl->metric = options.metric;
  impl->options = options;
  impl->options.progress = {};
  impl->searchers_most = options.searchers;
  impl->threads = options.threads;
  impl->cache = options.cache;
  Graph graph;
  if (rows.count > 0) {
    const auto promoted = promoted_for(rows.count, distinct.twins.size(), rows.dimension, options);
    if (!promoted) return promoted.error();
    graph = build_graph(rows, *promoted, options);
  }
  // For every placement, so that the same vectors make the same index.
  const ElementType element = rows.count > 0 ? element_of(rows) : ElementType::f32;
  if (rows.count > 0)
    pack_neighbours(graph, SlowLayout(graph.layers, rows.dimension, true, element).records_per_unit());
  if (const auto placed = impl->place(graph, rows, element, slow); !placed) return placed.error();
  impl->fast = make_fast_part(graph, rows, options.code_bytes, options.seed);
  impl->fast.twins = std::move(distinct.twins);
  impl->fast.marks = std::make_unique<Marks>(impl->fast.vectors_held());
  return Index(std::move(impl));
}

Index::Index(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Index::Index(Index&&) noexcept = default;
Index& Index::operator=(Index&&) noexcept = default;
Index::~Index() = default;

Metric Index::metric() const { return impl_->metric; }

IndexSize Index::size() const {
  const std::shared_lock unchanged(impl_->changing);
  const auto& layers = impl_->fast.layers;
  const std::size_t dimension = impl_->fast.dimension;
  const PartSize fast = fast_size(layers, dimension),
                 slow = slow_size(layers, dimension, impl_->layout.type());
  IndexSize size;
  size.vectors = impl_->fast.vectors_held();
  size.nodes = impl_->fast.nodes();
  size.promoted = impl_->fast.promoted();
  size.removed = impl_->fast.marks->count();
  size.marks = Marks::size_for(size.vectors);
  size.dimension = dimension;
  size.fast_links = fast.links, size.fast_elements = fast.elements,
  size.fast_ids = fast.ids + Bytes{sizeof(Twin)} * impl_->fast.twins.size();
  size.slow_links = slow.links, size.slow_elements = slow.elements, size.slow_ids = slow.ids;
  size.slow_padding = impl_->layout.total() - slow.total();
  size.codes = codes_size(layers, dimension, static_cast<std::uint32_t>(impl_->fast.book.parts));
  size.searchers =
      Searcher::size_for(size.nodes, impl_->threads, impl_->fast.book.parts) * impl_->searchers_most;
  size.cache = impl_->cache;
  return size;
}

Result<Neighbours> Index::search(const Vectors& queries, std::size_t k, const SearchOptions& options) const {
  if (const auto good = check_vectors(queries, impl_->metric, "query"); !good) return good.error();
  if (queries.dimension != impl_->fast.dimension)
    return refuse(fmt::format("queries have {} dimensions and the index has {}", queries.dimension,
                              impl_->fast.dimension));
  if (options.ef1 > kMostEf || options.ef0 > kMostEf || options.beam > kMostEf || options.shares > kMostEf)
    return refuse(fmt::format("ef1, ef0, beam and shares are at most {}", kMostEf));
  Neighbours answers(queries.count());
  std::vector<float> query(queries.dimension);
  const std::shared_lock unchanged(impl_->changing);
  const auto searcher = impl_->borrow();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    std::copy(queries[i].begin(), queries[i].end(), query.begin());
    normalise(query, query.size(), impl_->metric);
    answers[i] = searcher->search(query.data(), k, options);
    impl_->queries.fetch_add(1, std::memory_order_relaxed);
  }
  return answers;
}

Result<void> Index::remove(std::uint32_t id) {
  const std::shared_lock unchanged(impl_->changing);
  if (id >= impl_->fast.vectors_held())
    return refuse(fmt::format("there is no vector {}: the index holds {}", id, impl_->fast.vectors_held()));
  impl_->fast.marks->mark(id);
  return {};
}

SearchStatistics Index::statistics() const {
  const std::shared_lock unchanged(impl_->changing);
  return impl_->statistics();
}

}  // namespace terrace::ann

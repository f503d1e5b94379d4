// SPDX-License-Identifier: Apache-2.0
#include "ann/index_parts.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace terrace::ann {
FastPart make_fast_part(Graph& graph, const Rows& rows, std::uint32_t code_bytes, std::uint64_t seed) {
  FastPart fast;
  fast.layers = graph.layers;
  fast.dimension = rows.dimension;
  fast.metric = rows.metric;
  fast.distance = rows.distance;
  if (graph.layers.empty()) return fast;
  fast.links.resize(1);
  for (std::size_t i = 1; i < graph.links.size(); ++i) fast.links.push_back(std::move(graph.links[i]));
  const std::uint64_t promoted = graph.layers[1].nodes;
  fast.vectors.reserve(promoted * rows.dimension);
  for (const std::uint32_t row : std::span(graph.order).first(promoted)) {
    fast.ids.push_back(rows.ids[row]);
    fast.vectors.insert(fast.vectors.end(), rows.row(row), rows.row(row) + rows.dimension);
  }
  if (code_bytes == 0) return fast;
  const auto row_of = [&](std::uint64_t node) { return rows.row(graph.order[node]); };
  fast.book = learn_codebook(rows.dimension, code_bytes, rows.count, row_of, seed);
  fast.codes.resize((rows.count - promoted) * code_bytes);
  for (std::uint64_t node = promoted; node < rows.count; ++node)
    fast.book.encode(row_of(node), fast.codes.data() + (node - promoted) * code_bytes);
  return fast;
}

ElementType element_of(const Rows& rows) { return smallest_type({rows.row(0), rows.count * rows.dimension}); }

void write_record(const Graph& graph, const Rows& rows, const SlowLayout& layout, std::uint32_t node,
                  std::byte* out) {
  std::memcpy(out, graph.links[0].data() + std::size_t{node} * layout.links(), layout.list_bytes().count);
  if (node < layout.promoted()) return;
  const std::uint32_t row = graph.order[node];
  std::memcpy(out + layout.id_at().count, &rows.ids[row], kIdBytes.count);
  write_elements(layout.type(), {rows.row(row), rows.dimension}, out + layout.vector_at().count);
}

SlowPieces::SlowPieces(const SlowLayout& layout, std::function<void(std::uint32_t, std::byte*)> write)
    : layout_(layout), write_(std::move(write)) {
  if (layout_.nodes() == 0) return;
  check(layout_.unit().count > 0, "pieces are made of units");
  constexpr std::size_t kAlignment = 4096;
  const std::uint64_t size = std::min(round_up(Bytes{1U << 20}, layout_.unit()), layout_.total()).count;
  memory_.resize(size + kAlignment);
  const auto skip = (kAlignment - reinterpret_cast<std::uintptr_t>(memory_.data()) % kAlignment) % kAlignment;
  piece_ = std::span(memory_).subspan(skip, size);
}

std::span<const std::byte> SlowPieces::next() {
  const std::uint64_t size =
      std::min<std::uint64_t>(piece_.size(), layout_.nodes() == 0 ? 0 : layout_.total().count - offset_);
  std::fill(piece_.begin(), piece_.end(), std::byte{0});
  for (; node_ < layout_.nodes() && layout_.place(node_) < offset_ + size; ++node_)
    write_(node_, piece_.data() + (layout_.place(node_) - offset_));
  offset_ += size;
  return piece_.first(size);
}

}  // namespace terrace::ann

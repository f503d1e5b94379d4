#include "ann/index_parts.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace terrace::ann {
namespace {

/// The first node, from `from` on, that lies at byte `place` or behind it.
std::uint32_t node_at(const SlowLayout& layout, std::uint32_t from, std::uint64_t place) {
  std::uint32_t least = from, most = static_cast<std::uint32_t>(layout.nodes());
  while (least < most) {
    const std::uint32_t middle = least + (most - least) / 2;
    layout.place(middle) < place ? least = middle + 1 : most = middle;
  }
  return least;
}

}  // namespace

FastPart make_fast_part(Graph& graph, const Rows& rows) {
  FastPart fast;
  fast.layers = graph.layers;
  fast.dimension = rows.dimension;
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
  return fast;
}

void write_slow_part(const Graph& graph, const Rows& rows, const SlowLayout& layout, std::uint64_t start,
                     std::uint32_t first, std::uint32_t last, std::byte* memory) {
  for (std::uint32_t node = first; node < last; ++node) {
    std::byte* out = memory + (layout.place(node) - start);
    std::memcpy(out, graph.links[0].data() + std::size_t{node} * layout.links(), layout.list_bytes().count);
    if (node < layout.promoted()) continue;
    std::memcpy(out + layout.id_at().count, &rows.ids[graph.order[node]], kIdBytes.count);
    std::memcpy(out + layout.vector_at().count, rows.row(graph.order[node]), rows.dimension * sizeof(float));
  }
}

void for_each_piece(const Graph& graph, const Rows& rows, const SlowLayout& layout,
                    const std::function<void(std::uint64_t, std::span<const std::byte>)>& take) {
  check(layout.unit().count > 0, "pieces are made of units");
  // Aligned as a disk wants it.
  constexpr std::size_t kAlignment = 4096;
  const std::uint64_t most = round_up(Bytes{1U << 20}, layout.unit()).count, total = layout.total().count;
  std::vector<std::byte> memory(most + kAlignment);
  const auto skip = (kAlignment - reinterpret_cast<std::uintptr_t>(memory.data()) % kAlignment) % kAlignment;
  std::byte* piece = memory.data() + skip;
  std::uint32_t node = 0;
  for (std::uint64_t offset = 0; offset < total; offset += most) {
    const std::uint64_t size = std::min(most, total - offset);
    std::fill(piece, piece + size, std::byte{0});
    const std::uint32_t last = node_at(layout, node, offset + size);
    write_slow_part(graph, rows, layout, offset, node, last, piece);
    node = last;
    take(offset, std::span<const std::byte>(piece, size));
  }
}

}  // namespace terrace::ann

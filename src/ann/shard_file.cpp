// SPDX-License-Identifier: Apache-2.0
#include "ann/shard_file.hpp"

#include <algorithm>

#include "ann/checked_file.hpp"
#include "base/check.hpp"
#include "base/replace_file.hpp"

namespace terrace::ann {
namespace {

/// All shards are read at once when they are joined, so each reads little at a time.
constexpr std::uint64_t kRowsAtOnce = 64;

/// Of each local row, the node that it became.
std::vector<std::uint32_t> nodes_of(const Graph& graph) {
  std::vector<std::uint32_t> nodes(graph.order.size());
  for (std::size_t node = 0; node < nodes.size(); ++node)
    nodes[graph.order[node]] = static_cast<std::uint32_t>(node);
  return nodes;
}

std::vector<std::uint32_t> packed(const Graph& graph, const ShardRows& shard, std::uint64_t group) {
  const auto numbers = grouped_numbers(graph.links[0], graph.layers[0].links,
                                       static_cast<std::uint32_t>(graph.order.size()), 0, group);
  std::vector<std::uint32_t> by_number(numbers.size()), rows;
  for (std::size_t node = 0; node < numbers.size(); ++node) by_number[numbers[node]] = graph.order[node];
  for (const std::uint32_t local : by_number) {
    if (shard.primary[local]) rows.push_back(shard.rows[local]);
  }
  return rows;
}

}  // namespace

Result<void> build_shard(const std::filesystem::path& path, const Rows& vectors, const ShardRows& shard,
                         const HnswOptions& options, std::uint64_t group) {
  const Graph graph = build_hnsw(vectors, options);
  const std::size_t width = 2 * options.links;
  const auto nodes = nodes_of(graph);
  const auto order = packed(graph, shard, group);
  std::vector<Link> piece;
  std::uint64_t row = 0;
  bool ordered = false;
  const Pieces pieces{
      Bytes{shard.rows.size() * width * sizeof(Link) + order.size() * sizeof(std::uint32_t)},
      [&]() -> std::span<const std::byte> {
        if (row == shard.rows.size()) {
          return std::exchange(ordered, true) ? std::span<const std::byte>{}
                                              : std::as_bytes(std::span(order));
        }
        piece.clear();
        for (const std::uint64_t end = std::min<std::uint64_t>(row + kRowsAtOnce, nodes.size()); row < end;
             ++row) {
          const std::uint32_t* links = graph.links[0].data() + nodes[row] * width;
          for (std::size_t i = 0; i < width; ++i) {
            if (links[i] == kNoLink) {
              piece.push_back({kNoLink, 0});
              continue;
            }
            const std::uint32_t other = graph.order[links[i]];
            piece.push_back({shard.rows[other], vectors.distance(vectors.row(static_cast<std::uint32_t>(row)),
                                                                 vectors.row(other), vectors.dimension)});
          }
        }
        return std::as_bytes(std::span(piece));
      }};
  return replace_file(path, pieces);
}

Result<ShardReader> ShardReader::open(const std::filesystem::path& path, std::uint64_t rows,
                                      std::uint64_t primaries, std::uint32_t width) {
  auto file = open_sized(path, Bytes{rows * width * sizeof(Link) + primaries * sizeof(std::uint32_t)});
  if (!file) return file.error();
  return ShardReader(*std::move(file), rows, primaries, width);
}

std::span<const Link> ShardReader::next() {
  check(row_ < rows_, "a shard has links for its rows alone");
  if (at_ == buffer_.size()) {
    buffer_.resize(std::min<std::uint64_t>(kRowsAtOnce, rows_ - row_) * width_);
    read_at(file_, row_ * width_ * sizeof(Link), std::as_writable_bytes(std::span(buffer_)));
    at_ = 0;
  }
  ++row_;
  at_ += width_;
  return std::span(buffer_).subspan(at_ - width_, width_);
}

std::vector<std::uint32_t> ShardReader::packed_rows() const {
  std::vector<std::uint32_t> rows(primaries_);
  read_at(file_, rows_ * width_ * sizeof(Link), std::as_writable_bytes(std::span(rows)));
  return rows;
}

}  // namespace terrace::ann

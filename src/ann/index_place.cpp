// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ann/index.hpp"
#include "ann/index_parts.hpp"
#include "terrace/error.hpp"

namespace terrace::ann {
namespace {

Error too_small(const Tier& tier, Bytes needed) {
  return {ErrorCode::too_large,
          fmt::format("the slow part of the index has {} and tier {} holds {}: give it more",
                      readable(needed), tier.description().name, readable(tier.description().capacity))};
}

/// Writes one piece after the other.
void write(Tier& tier, std::uint64_t offset, std::span<const std::byte> bytes) {
  BlockQueue& queue = *tier.blocks();
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(bytes.size(), queue.request_size().count);
    const std::array<Piece, 1> pieces{Piece{const_cast<std::byte*>(bytes.data()), size}};
    queue.submit({Access::write, offset, pieces, 0});
    BlockCompletion done;
    while (queue.wait(std::span(&done, 1)) == 0) {
    }
    if (done.result <= 0) {
      const int cause = static_cast<int>(-done.result);
      throw EnvironmentError(fmt::format("writing the index to {} failed at byte {} ({}): check the disk",
                                         tier.description().name, offset,
                                         cause != 0 ? std::strerror(cause) : "nothing was written"),
                             {tier.description().name, tier.description().spec.path, offset, cause});
    }
    // A short write ends at a block, and the rest is asked for again.
    bytes = bytes.subspan(static_cast<std::size_t>(done.result));
    offset += static_cast<std::uint64_t>(done.result);
  }
}

}  // namespace

Result<void> Index::Impl::reserve() {
  if (tier == nullptr) {
    memory.resize(layout.total().count);
    return {};
  }
  if (tier->memory() == nullptr)
    return Error{ErrorCode::unsupported,
                 fmt::format("tier {} is no memory: open the index on its own disk instead",
                             tier->description().name)};
  if (layout.total() > tier->description().capacity) return too_small(*tier, layout.total());
  return {};
}

Result<void> Index::Impl::place(const Graph& graph, const Rows& rows, ElementType element, Tier* slow) {
  tier = slow;
  const bool blocks = slow != nullptr && slow->blocks() != nullptr;
  layout = SlowLayout(graph.layers, rows.dimension, blocks, blocks ? element : ElementType::f32);
  if (blocks) return place_on_disk(graph, rows, *slow);
  if (const auto room = reserve(); !room) return room.error();
  for (std::uint32_t node = 0; node < layout.nodes(); ++node)
    write_record(graph, rows, layout, node, slow_memory() + layout.place(node));
  return {};
}

Result<void> Index::Impl::place_on_disk(const Graph& graph, const Rows& rows, Tier& slow) {
  if (layout.nodes() == 0) return {};
  if (layout.total() > slow.description().capacity) return too_small(slow, layout.total());
  if (cache < least_cache(layout) * walks())
    return Error{ErrorCode::too_large,
                 fmt::format("a cache of {} is too small for this index on a disk: give it at least {}",
                             readable(cache), readable(least_cache(layout) * walks()))};
  SlowPieces pieces(
      layout, [&](std::uint32_t node, std::byte* out) { write_record(graph, rows, layout, node, out); });
  std::uint64_t offset = 0;
  for (auto piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
    write(slow, offset, piece);
    offset += piece.size();
  }
  return {};
}

void Index::Impl::open_disk(const std::filesystem::path& path) {
  disk_ = std::make_unique<DiskFile>(path, layout.unit());
}

std::unique_ptr<SlowPart> Index::Impl::open_slow_part() {
  if (disk_ != nullptr) {
    queues_.push_back(disk_->open_queue());
    return slow_on_disk(layout, *queues_.back(), fast.distance, cache / walks(), disk_->path(),
                        disk_->path());
  }
  if (layout.unit().count == 0) return slow_in_memory(layout, slow_memory(), fast.distance, tier);
  queues_.push_back(tier->lane());
  return slow_on_disk(layout, *queues_.back(), fast.distance, cache / walks(), tier->description().name,
                      tier->description().spec.path);
}

}  // namespace terrace::ann

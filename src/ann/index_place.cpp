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

Result<void> Index::Impl::place(const Graph& graph, const Rows& rows, Tier* slow) {
  tier = slow;
  const bool blocks = slow != nullptr && slow->blocks() != nullptr;
  layout = SlowLayout(graph.layers, rows.dimension, blocks);
  if (slow != nullptr && layout.total() > slow->description().capacity)
    return too_small(*slow, layout.total());
  return blocks ? place_on_disk(graph, rows, *slow) : place_in_memory(graph, rows, slow);
}

Result<void> Index::Impl::place_in_memory(const Graph& graph, const Rows& rows, Tier* slow) {
  if (slow == nullptr) memory.resize(layout.total().count);
  write_slow_part(graph, rows, layout, 0, 0, static_cast<std::uint32_t>(layout.nodes()),
                  slow == nullptr ? memory.data() : slow->memory());
  return {};
}

Result<void> Index::Impl::place_on_disk(const Graph& graph, const Rows& rows, Tier& slow) {
  if (layout.nodes() == 0) return {};
  if (cache < least_cache(layout))
    return Error{ErrorCode::too_large,
                 fmt::format("a cache of {} is too small for this index on a disk: give it at "
                             "least {}",
                             readable(cache), readable(least_cache(layout)))};
  // The tier has one queue, which one thread may use.
  searchers_most = 1;
  for_each_piece(graph, rows, layout,
                 [&](std::uint64_t offset, std::span<const std::byte> piece) { write(slow, offset, piece); });
  return {};
}

std::unique_ptr<SlowPart> Index::Impl::open_slow_part() {
  if (tier == nullptr || layout.nodes() == 0)
    return slow_in_memory(layout, memory.data(), fast.distance, nullptr);
  if (tier->memory() != nullptr) return slow_in_memory(layout, tier->memory(), fast.distance, tier);
  return slow_on_disk(layout, *tier->blocks(), fast.distance, cache, tier->description().name,
                      tier->description().spec.path);
}

}  // namespace terrace::ann

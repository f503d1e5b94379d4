// Heap::evict_from makes room at a place that the policy chose (003 section III-D, Listing 2).
#include <fmt/format.h>

#include "base/check.hpp"
#include "heap/block_table.hpp"

namespace terrace {
namespace {

// A Sweep is one call of evict_from. The callback may change the heap in any way, so only offsets are kept
// across it, and a slot that merely shortens the walk.
class Sweep {
 public:
  Sweep(BlockTable& table, std::uint64_t size, const std::function<bool(Slot)>& evict)
      : table_(table), size_(size), evict_(evict), last_allocation_(table.allocations) {}

  /// Clears a range that begins in [begin, until) and returns the size of the hole that contains it, or 0.
  Bytes clear(std::uint64_t begin, std::uint64_t until) {
    Slot near{};
    while (begin < until && size_ <= table_.capacity - begin) {
      BlockIndex at = table_.covering(begin, near);
      const Block& block = table_.blocks[at];
      if (!block.used()) {
        if (size_ <= block.end() - begin) return {block.size};
        at = block.next;
      }
      near = used_before(at);
      if (const std::uint64_t end = table_.blocks[at].end(); !remove(at)) begin = end;
    }
    return {};
  }

 private:
  // Returns the block in use below this one, which remains when this one is evicted.
  Slot used_before(BlockIndex at) const {
    do {
      at = table_.blocks[at].prev;
    } while (at != kNoBlock && !table_.blocks[at].used());
    return at == kNoBlock ? Slot{} : table_.slot(at);
  }

  // A block that the callback itself allocated is kept, because eviction might otherwise never end.
  bool remove(BlockIndex at) {
    const Slot slot = table_.slot(at);
    if (table_.blocks[at].allocation > last_allocation_ || !evict_(slot)) return false;
    check(!table_.live(slot), "the callback of evict_from returned true but did not free the block");
    return true;
  }

  BlockTable& table_;
  const std::uint64_t size_;
  const std::function<bool(Slot)>& evict_;
  const std::uint64_t last_allocation_;
};

}  // namespace

Result<Bytes> Heap::evict_from(Slot start, Bytes size, const std::function<bool(Slot)>& evict) {
  BlockTable& table = *impl_;
  const std::uint64_t first = table.blocks[table.at(start)].offset;
  if (size == Bytes{} || size.count > table.capacity) return table.misfit(size);
  size = round_up(size, {table.granularity});
  Sweep sweep(table, size.count, evict);
  Bytes hole = sweep.clear(first, table.capacity);
  if (hole == Bytes{}) hole = sweep.clear(0, first);
  if (hole != Bytes{}) return hole;
  return Error{
      ErrorCode::tier_full,
      fmt::format("could not clear {} in a row: blocks in the way were kept, and the largest hole is "
                  "{}; let more blocks go, or ask for less",
                  to_string(size), to_string(largest_hole()))};
}

}  // namespace terrace

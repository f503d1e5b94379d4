// Heap::compact slides blocks together.
#include "base/check.hpp"
#include "heap/block_table.hpp"

namespace terrace {
namespace {

// A new block could be placed where bytes are being moved to, so no allocation is allowed while this is in
// scope.
class Moving {
 public:
  explicit Moving(BlockTable& table) : table_(table) {
    check(!table.moving, "a move of compact must not compact");
    table_.moving = true;
  }
  Moving(const Moving&) = delete;
  Moving& operator=(const Moving&) = delete;
  ~Moving() { table_.moving = false; }

 private:
  BlockTable& table_;
};

// Returns where the block would begin if it moved down into the hole below it.
std::uint64_t lowest_place(const BlockTable& table, const Block& block) {
  if (block.prev == kNoBlock || table.blocks[block.prev].used()) return block.offset;
  const std::uint64_t mask = (std::uint64_t{1} << block.alignment_log2) - 1;
  return (table.blocks[block.prev].offset + mask) & ~mask;
}

}  // namespace

void Heap::compact(const std::function<bool(Slot, std::uint64_t from, std::uint64_t to, Bytes size)>& move) {
  BlockTable& table = *impl_;
  const Moving moving(table);
  Slot near{};
  // `move` may free blocks, so blocks are looked up anew by offset; a freed one leaves a larger hole.
  for (std::uint64_t done = 0; done < table.capacity;) {
    const BlockIndex at = table.covering(done, near);
    const Block block = table.blocks[at];
    done = block.end();
    if (!block.used()) continue;
    const Slot slot = table.slot(at);
    const std::uint64_t to = lowest_place(table, block);
    table.make_room();  // reserved now, because nothing may fail once bytes have moved
    const bool moved = to < block.offset && move(slot, block.offset, to, {block.size});
    if (!table.live(slot)) continue;
    if (moved) table.slide(at, to);
    near = slot;
  }
}

}  // namespace terrace

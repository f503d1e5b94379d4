#include "heap/block_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace terrace {
namespace {

#ifdef NDEBUG
constexpr bool kChecked = false;
#else
constexpr bool kChecked = true;
#endif

std::uint64_t align_up(std::uint64_t offset, std::uint64_t alignment) {
  return (offset + alignment - 1) & ~(alignment - 1);
}

}  // namespace

BlockTable::BlockTable(std::uint64_t capacity_bytes, std::uint64_t granularity_bytes)
    : capacity(capacity_bytes), granularity(granularity_bytes) {
  if (capacity == 0) return;
  make_room();
  head = add_between(kNoBlock, kNoBlock, 0, capacity);
  add_hole(head);
}

// This is called before a change begins, so that running out of memory changes nothing. No step adds more
// than two blocks.
void BlockTable::make_room() {
  if (blocks.capacity() - blocks.size() >= 2) return;
  check(blocks.size() < kNoBlock / 2, "the heap holds too many blocks");
  blocks.reserve(2 * blocks.size() + 64);
}

BlockIndex BlockTable::add_between(BlockIndex prev, BlockIndex next, std::uint64_t offset,
                                   std::uint64_t size) {
  BlockIndex added = spare;
  if (added != kNoBlock) {
    spare = blocks[added].next;
  } else {
    added = static_cast<BlockIndex>(blocks.size());
    blocks.emplace_back();
  }
  blocks[added] = Block{.offset = offset, .size = size, .prev = prev, .next = next};
  (prev != kNoBlock ? blocks[prev].next : head) = added;
  if (next != kNoBlock) blocks[next].prev = added;
  return added;
}

BlockIndex BlockTable::add_after(BlockIndex block, std::uint64_t offset, std::uint64_t size) {
  return add_between(block, blocks[block].next, offset, size);
}

BlockIndex BlockTable::add_before(BlockIndex block, std::uint64_t offset, std::uint64_t size) {
  return add_between(blocks[block].prev, block, offset, size);
}

void BlockTable::remove(BlockIndex block) {
  const auto [prev, next] = std::pair(blocks[block].prev, blocks[block].next);
  (prev != kNoBlock ? blocks[prev].next : head) = next;
  if (next != kNoBlock) blocks[next].prev = prev;
  blocks[block] = Block{.next = spare};
  spare = block;
}

void BlockTable::add_hole(BlockIndex hole) {
  holes.insert(blocks, hole);
  ++hole_count;
}

void BlockTable::remove_hole(BlockIndex hole) {
  holes.erase(blocks, hole);
  --hole_count;
}

BlockIndex BlockTable::find(std::uint64_t size, std::uint64_t alignment) const {
  BlockIndex hole = holes.first_from(blocks, size, 0);
  // A hole that is large enough can only be unfit by an alignment above the granularity.
  while (hole != kNoBlock) {
    const Block& candidate = blocks[hole];
    if (align_up(candidate.offset, alignment) + size <= candidate.end()) break;
    hole = holes.first_from(blocks, candidate.size, candidate.offset + 1);
  }
  return hole;
}

// Cuts [from, from + size) out of the hole; the remainder on either side stays a hole.
BlockIndex BlockTable::carve(BlockIndex hole, std::uint64_t from, std::uint64_t size) {
  const auto [begin, end] = std::pair(blocks[hole].offset, blocks[hole].end());
  const std::uint64_t to = from + size;
  if (begin == from && to == end) {
    remove_hole(hole);
    return hole;
  }
  if (begin == from) {
    holes.change(blocks, hole, to, end - to);
    return add_before(hole, from, size);
  }
  holes.change(blocks, hole, begin, from - begin);
  const BlockIndex block = add_after(hole, from, size);
  if (to < end) add_hole(add_after(block, to, end - to));
  return block;
}

BlockIndex BlockTable::take(BlockIndex hole, std::uint64_t size, std::uint64_t alignment,
                            std::uint64_t owner) {
  make_room();
  const BlockIndex taken = carve(hole, align_up(blocks[hole].offset, alignment), size);
  Block& block = blocks[taken];
  if (static_cast<std::uint32_t>(++allocations) == 0) ++allocations;  // generation 0 names no block
  block.allocation = allocations;
  block.owner = owner;
  block.alignment_log2 = static_cast<std::uint8_t>(std::countr_zero(alignment));
  used += size;
  ++blocks_used;
  peak = std::max(peak, used);
  footprint = std::max(footprint, block.end());
  if constexpr (kChecked) check_around(taken);
  return taken;
}

void BlockTable::release(BlockIndex block) {
  const auto [offset, size, prev, next] =
      std::tuple(blocks[block].offset, blocks[block].size, blocks[block].prev, blocks[block].next);
  used -= size;
  --blocks_used;
  blocks[block].allocation = 0;
  const std::uint64_t above = is_hole(next) ? blocks[next].size : 0;
  BlockIndex hole = block;
  if (is_hole(prev)) {
    if (above > 0) {
      remove_hole(next);
      remove(next);
    }
    remove(block);
    holes.change(blocks, prev, blocks[prev].offset, blocks[prev].size + size + above);
    hole = prev;
  } else if (above > 0) {
    remove(block);
    holes.change(blocks, next, offset, size + above);
    hole = next;
  } else {
    add_hole(block);
  }
  if constexpr (kChecked) check_around(hole);
}

void BlockTable::slide(BlockIndex block, std::uint64_t to) {
  make_room();
  const BlockIndex below = blocks[block].prev;
  const std::uint64_t gap = blocks[block].offset - to;
  if (blocks[below].offset < to) {
    holes.change(blocks, below, blocks[below].offset, to - blocks[below].offset);
  } else {
    remove_hole(below);
    remove(below);
  }
  blocks[block].offset = to;
  const BlockIndex above = blocks[block].next;
  if (is_hole(above)) {
    holes.change(blocks, above, blocks[block].end(), blocks[above].size + gap);
  } else {
    add_hole(add_after(block, blocks[block].end(), gap));
  }
  if constexpr (kChecked) check_around(block);
}

bool BlockTable::live(Slot slot) const {
  return slot.index < blocks.size() && blocks[slot.index].used() &&
         static_cast<std::uint32_t>(blocks[slot.index].allocation) == slot.generation;
}

BlockIndex BlockTable::at(Slot slot) const {
  check(live(slot), "the slot names no block in use: it was freed before, or belongs to another heap");
  return slot.index;
}

BlockIndex BlockTable::covering(std::uint64_t offset, Slot near) const {
  BlockIndex block = live(near) && blocks[near.index].offset <= offset ? near.index : head;
  while (block != kNoBlock && blocks[block].end() <= offset) block = blocks[block].next;
  return block;
}

std::uint64_t BlockTable::largest_hole() const {
  const BlockIndex hole = holes.largest(blocks);
  return hole == kNoBlock ? 0 : blocks[hole].size;
}

Error BlockTable::misfit(Bytes size) const {
  if (size == Bytes{})
    return {ErrorCode::invalid_argument, "asked for a block of 0 bytes: ask for at least 1"};
  return {ErrorCode::too_large,
          fmt::format("asked for {}, but the whole tier holds {}: ask for less, or give it a larger capacity",
                      to_string(size), to_string(Bytes{capacity}))};
}

}  // namespace terrace

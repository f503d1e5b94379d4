// BlockTable is the heap's state with its elementary steps. Heap (heap.cpp) adds the public interface and its
// error messages; evict.cpp and compact.cpp add the sweeps.
//
// The blocks form a list in address order that tiles [0, capacity); holes are also in the index. Unused
// entries are kept in a list of spares. Where NDEBUG is not defined, every change is followed by a check of
// the blocks around it and, once in as many changes as there are blocks, by validate(). The cost per change
// is constant on average, so that a debug build stays usable.
#pragma once

#include <cstdint>

#include "heap/block.hpp"
#include "heap/hole_index.hpp"
#include "terrace/heap.hpp"

namespace terrace {

struct BlockTable {
  BlockTable(std::uint64_t capacity_bytes, std::uint64_t granularity_bytes);

  /// Returns the smallest hole that holds such a block at its alignment, the lowest among equals, or
  /// kNoBlock.
  BlockIndex find(std::uint64_t size, std::uint64_t alignment) const;
  /// Turns the hole's first aligned bytes into a block in use. pre: find() returned the hole.
  BlockIndex take(BlockIndex hole, std::uint64_t size, std::uint64_t alignment, std::uint64_t owner);
  void release(BlockIndex block);
  /// Reserves memory before a change that must not fail, so that one block can be added afterwards.
  void make_room();
  /// Moves a block in use to a lower offset. pre: the hole before it covers [to, its offset)
  void slide(BlockIndex block, std::uint64_t to);

  bool live(Slot slot) const;
  /// Returns the slot's block after checking that the slot is live.
  BlockIndex at(Slot slot) const;
  Slot slot(BlockIndex block) const { return {block, static_cast<std::uint32_t>(blocks[block].allocation)}; }
  /// Returns the block that holds this byte, or kNoBlock beyond the end. It walks from `near` if that is live
  /// and not above, otherwise from offset 0.
  BlockIndex covering(std::uint64_t offset, Slot near) const;
  std::uint64_t largest_hole() const;
  /// Explains why a block of this size can never be allocated. pre: it is 0 or above the capacity
  Error misfit(Bytes size) const;

  Result<void> validate() const;

  Blocks blocks;
  HoleIndex holes;
  BlockIndex head = kNoBlock;   ///< the block at offset 0
  BlockIndex spare = kNoBlock;  ///< recycled blocks, linked by `next`
  std::uint64_t capacity, granularity;
  std::uint64_t used = 0, peak = 0, footprint = 0;
  std::uint64_t blocks_used = 0, hole_count = 0;
  std::uint64_t allocations = 0;  ///< allocations so far
  std::uint64_t changes = 0;      ///< since the last validate() of a debug build
  bool moving = false;  ///< inside compact's callback, where a new block might overlap the destination

 private:
  BlockIndex add_after(BlockIndex block, std::uint64_t offset, std::uint64_t size);
  BlockIndex add_before(BlockIndex block, std::uint64_t offset, std::uint64_t size);
  BlockIndex add_between(BlockIndex prev, BlockIndex next, std::uint64_t offset, std::uint64_t size);
  void remove(BlockIndex block);
  void remove_hole(BlockIndex hole);
  void add_hole(BlockIndex hole);
  BlockIndex carve(BlockIndex hole, std::uint64_t from, std::uint64_t size);
  bool is_hole(BlockIndex block) const { return block != kNoBlock && !blocks[block].used(); }

  void check_around(BlockIndex changed);
};

struct Heap::Impl : BlockTable {
  using BlockTable::BlockTable;
};

}  // namespace terrace

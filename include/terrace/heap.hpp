// A Heap carves one tier into regions. It manages offsets only and never touches the tier's bytes, so that a
// disk is carved like memory.
//
// Vocabulary: a block is a contiguous range of the tier, in use or a hole; a `Slot` names a block in use.
// Every byte of the capacity belongs to exactly one block; no two holes are neighbours.
//   used + free = capacity;  largest_hole <= free;  peak >= used;  footprint = end of the highest block ever
//   used
// Placement is best fit with the lowest offset among equals, so it is deterministic. A heap is not
// thread-safe: its owner holds a lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "terrace/bytes.hpp"
#include "terrace/result.hpp"

namespace terrace {

/// A Slot names a block in use until it is freed. It may be copied; using it after free() is detected.
struct Slot {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  bool operator==(const Slot&) const = default;
};

struct HeapStatistics {
  Bytes capacity, used, peak, free, largest_hole, footprint;
  std::uint64_t blocks_used = 0, holes = 0;
};

class Heap {
 public:
  /// pre: granularity is a power of two; capacity a multiple of it, below 8 EiB.
  Heap(Bytes capacity, Bytes granularity);
  Heap(Heap&&) noexcept;
  Heap& operator=(Heap&&) noexcept;
  ~Heap();

  /// `size` is rounded up to the granularity. `alignment` is a power of two up to 2 MiB, 0 = the granularity.
  /// `owner` is a value of the caller's that owner() returns. Fails with tier_full (naming the largest hole),
  /// too_large or invalid_argument. Takes logarithmic time; with an alignment above the granularity, holes
  /// that are large enough but contain no aligned range are skipped.
  Result<Slot> allocate(Bytes size, Bytes alignment = {}, std::uint64_t owner = 0);
  /// Takes logarithmic time. pre for all functions below: the slot is live.
  void free(Slot slot);

  std::uint64_t offset(Slot slot) const;
  Bytes size(Slot slot) const;  ///< after rounding up
  std::uint64_t owner(Slot slot) const;
  void set_owner(Slot slot, std::uint64_t owner);

  Bytes largest_hole() const;
  HeapStatistics statistics() const;

  /// Clears `size` contiguous bytes at or after block `start` (003 Listing 2, wrapping to offset 0 once). It
  /// calls `evict` for each block in the range, which frees that block and returns true, or returns false to
  /// keep it; the range then restarts behind the kept block. The callback may allocate and free other blocks
  /// too; the range is looked up anew after each call, and blocks made by the callback are kept. Returns the
  /// size of the resulting hole, or tier_full when no range could be cleared.
  Result<Bytes> evict_from(Slot start, Bytes size, const std::function<bool(Slot)>& evict);

  /// Slides blocks towards offset 0, lowest first, until all free space is one hole at the end, except around
  /// blocks that `move` refuses. `move(slot, from, to, size)` copies the bytes (ranges may overlap, to <
  /// from) and returns true, or returns false to leave the block. The alignment given at allocation is
  /// preserved. `move` may free blocks, including this one, but must not allocate, because a new block could
  /// overlap the destination.
  void compact(const std::function<bool(Slot, std::uint64_t from, std::uint64_t to, Bytes size)>& move);

  /// Calls `visit` for each block in use, in address order. The heap must not change meanwhile.
  void each(const std::function<void(Slot)>& visit) const;

  /// Checks every invariant; the error names the first that is broken. It takes linear time and is meant for
  /// tests and debug builds.
  Result<void> validate() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace terrace

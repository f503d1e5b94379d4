// SPDX-License-Identifier: Apache-2.0
#include "terrace/heap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "heap/block_table.hpp"

namespace terrace {
namespace {

using namespace literals;
constexpr Bytes kLargestAlignment = 2_MiB;

Error bad_alignment(Bytes alignment) {
  return {ErrorCode::invalid_argument,
          fmt::format("cannot align a block to {}: give a power of two up to {}, or 0 for the granularity",
                      to_string(alignment), to_string(kLargestAlignment))};
}

Error no_room(const BlockTable& table, Bytes size, Bytes alignment) {
  return {ErrorCode::tier_full,
          fmt::format("asked for {} aligned to {}, but the largest hole is {} ({} of {} are free): free or "
                      "evict blocks, or compact",
                      to_string(size), to_string(alignment), to_string(Bytes{table.largest_hole()}),
                      to_string(Bytes{table.capacity - table.used}), to_string(Bytes{table.capacity}))};
}

}  // namespace

Heap::Heap(Bytes capacity, Bytes granularity) {
  check(std::has_single_bit(granularity.count), "the granularity of a heap is a power of two");
  check(capacity.count < std::uint64_t{1} << 63, "the capacity of a heap is below 8 EiB");
  check(capacity % granularity == Bytes{}, "the capacity of a heap is a multiple of its granularity");
  impl_ = std::make_unique<Impl>(capacity.count, granularity.count);
}

Heap::Heap(Heap&&) noexcept = default;
Heap& Heap::operator=(Heap&&) noexcept = default;
Heap::~Heap() = default;

Result<Slot> Heap::allocate(Bytes size, Bytes alignment, std::uint64_t owner) {
  BlockTable& table = *impl_;
  check(!table.moving, "a move of compact must not allocate");
  if (size == Bytes{} || size.count > table.capacity) return table.misfit(size);
  if (alignment > kLargestAlignment || (alignment.count & (alignment.count - 1)) != 0)
    return bad_alignment(alignment);
  const Bytes rounded = round_up(size, {table.granularity});
  alignment = std::max(alignment, Bytes{table.granularity});
  const BlockIndex hole = table.find(rounded.count, alignment.count);
  if (hole == kNoBlock) return no_room(table, rounded, alignment);
  return table.slot(table.take(hole, rounded.count, alignment.count, owner));
}

void Heap::free(Slot slot) { impl_->release(impl_->at(slot)); }

std::uint64_t Heap::offset(Slot slot) const { return impl_->blocks[impl_->at(slot)].offset; }
Bytes Heap::size(Slot slot) const { return {impl_->blocks[impl_->at(slot)].size}; }
std::uint64_t Heap::owner(Slot slot) const { return impl_->blocks[impl_->at(slot)].owner; }
void Heap::set_owner(Slot slot, std::uint64_t owner) { impl_->blocks[impl_->at(slot)].owner = owner; }

Bytes Heap::largest_hole() const { return {impl_->largest_hole()}; }

HeapStatistics Heap::statistics() const {
  const BlockTable& table = *impl_;
  return {.capacity = {table.capacity},
          .used = {table.used},
          .peak = {table.peak},
          .free = {table.capacity - table.used},
          .largest_hole = {table.largest_hole()},
          .footprint = {table.footprint},
          .blocks_used = table.blocks_used,
          .holes = table.hole_count};
}

void Heap::each(const std::function<void(Slot)>& visit) const {
  const BlockTable& table = *impl_;
  for (BlockIndex block = table.head; block != kNoBlock; block = table.blocks[block].next) {
    if (table.blocks[block].used()) visit(table.slot(block));
  }
}

Result<void> Heap::validate() const { return impl_->validate(); }

}  // namespace terrace

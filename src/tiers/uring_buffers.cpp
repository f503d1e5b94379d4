#ifdef TERRACE_HAS_URING
#include "tiers/uring_buffers.hpp"

#include <algorithm>

namespace terrace {
namespace {

constexpr unsigned kEntries = 1024;
constexpr std::size_t kSliceBytes = std::size_t{1} << 30;  // the kernel accepts no larger buffer

}  // namespace

UringBuffers::UringBuffers(io_uring& ring) : ring_(ring) {
  if (io_uring_register_buffers_sparse(&ring_, kEntries) < 0) return;
  for (unsigned entry = kEntries; entry > 0; --entry) free_entries_.push_back(entry - 1);
}

bool UringBuffers::add(std::span<std::byte> memory) {
  const auto begin = reinterpret_cast<Address>(memory.data());
  const Address end = begin + memory.size();
  drop_overlapping(begin, end);
  for (Address at = begin; at < end; at += kSliceBytes) {
    if (add_slice(at, std::min(end, at + kSliceBytes))) continue;
    drop_overlapping(begin, end);
    return false;
  }
  return !memory.empty();
}

void UringBuffers::remove(std::span<std::byte> memory) {
  const auto begin = reinterpret_cast<Address>(memory.data());
  drop_overlapping(begin, begin + memory.size());
}

std::optional<unsigned> UringBuffers::find(const Piece& piece) const {
  const auto begin = reinterpret_cast<Address>(piece.memory);
  auto after = slices_.upper_bound(begin);
  if (after == slices_.begin()) return std::nullopt;
  const Slice& slice = std::prev(after)->second;
  if (piece.bytes > slice.end - std::min(begin, slice.end)) return std::nullopt;
  return slice.entry;
}

bool UringBuffers::add_slice(Address begin, Address end) {
  if (free_entries_.empty() || !update(free_entries_.back(), begin, end - begin)) return false;
  slices_.emplace(begin, Slice{end, free_entries_.back()});
  free_entries_.pop_back();
  return true;
}

void UringBuffers::drop_overlapping(Address begin, Address end) {
  auto slice = slices_.lower_bound(begin);
  if (slice != slices_.begin() && std::prev(slice)->second.end > begin) --slice;
  while (slice != slices_.end() && slice->first < end) {
    // An entry that the kernel does not release stays pinned but is never used again.
    if (update(slice->second.entry, 0, 0)) free_entries_.push_back(slice->second.entry);
    slice = slices_.erase(slice);
  }
}

bool UringBuffers::update(unsigned entry, Address begin, std::size_t bytes) {
  const iovec buffer{reinterpret_cast<void*>(begin), bytes};
  const __u64 no_tag = 0;
  return io_uring_register_buffers_update_tag(&ring_, entry, &buffer, &no_tag, 1) == 1;
}

}  // namespace terrace
#endif

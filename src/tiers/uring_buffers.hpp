// Memory that an io_uring holds pinned, so that requests on it skip the pinning (fixed buffers).
//
// Cut into slices, each in one entry of the kernel's table. What is registered last is what counts: slices
// that overlap it are dropped, because their pages may have been given back meanwhile. Requests in flight
// keep the pages they began with. Not thread-safe: the queue holds a lock.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "terrace/tier.hpp"

namespace terrace {

class UringBuffers {
 public:
  /// Borrows the ring. Where the kernel has no sparse tables (before 5.19), add() always refuses.
  explicit UringBuffers(io_uring& ring);

  /// Returns false, with none of `memory` registered, where the kernel refuses (RLIMIT_MEMLOCK, table full).
  bool add(std::span<std::byte> memory);
  /// Drops every slice that has a byte of `memory`.
  void remove(std::span<std::byte> memory);
  /// The table entry that covers the whole piece.
  std::optional<unsigned> find(const Piece& piece) const;

 private:
  using Address = std::uintptr_t;
  struct Slice {
    Address end;
    unsigned entry;
  };

  bool add_slice(Address begin, Address end);
  void drop_overlapping(Address begin, Address end);
  bool update(unsigned entry, Address begin, std::size_t bytes);

  io_uring& ring_;
  std::map<Address, Slice> slices_;  // by first address
  std::vector<unsigned> free_entries_;
};

}  // namespace terrace

// UringBuffers registers memory with an io_uring (fixed buffers), so that requests need not pin it each time.
//
// Memory is cut into slices, each in one entry of the kernel's table. The latest registration wins: slices
// that overlap it are dropped, because their pages may have been unmapped meanwhile. Requests in flight keep
// the pages they began with. It is not thread-safe: the queue holds a lock.
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
  /// Borrows the ring. Where the kernel has no sparse tables (before 5.19), add() always returns false.
  explicit UringBuffers(io_uring& ring);

  /// Registers memory. Returns false, with none of it registered, where the kernel refuses (RLIMIT_MEMLOCK,
  /// table full).
  bool add(std::span<std::byte> memory);
  /// Drops every slice that overlaps `memory`.
  void remove(std::span<std::byte> memory);
  /// Returns the table entry that covers the whole piece.
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

#include "tiers/block_file.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"

namespace terrace {

// A Piece has the layout of the system's iovec, so that requests need no translated copy.
static_assert(sizeof(Piece) == sizeof(iovec) && alignof(Piece) == alignof(iovec));
static_assert(offsetof(Piece, memory) == offsetof(iovec, iov_base));
static_assert(offsetof(Piece, bytes) == offsetof(iovec, iov_len));

void check_request(const BlockFile& file, const BlockRequest& request) {
  const std::uint64_t block = file.block_size.count;
  check(request.offset % block == 0, "a block request's offset must be a multiple of block_size()");
  check(!request.pieces.empty(), "a block request needs at least one piece");
  check(request.offset <= file.capacity.count, "a block request must begin within the tier");
  std::uint64_t room = file.capacity.count - request.offset;
  for (const Piece& piece : request.pieces) {
    const auto address = reinterpret_cast<std::uintptr_t>(piece.memory);
    check(address % file.memory_alignment.count == 0,
          "a piece's address must be a multiple of memory_alignment()");
    check(piece.bytes > 0 && piece.bytes % block == 0,
          "a piece's length must be a positive multiple of block_size()");
    check(piece.bytes <= room, "a block request must end within the tier");
    room -= piece.bytes;
  }
}

int request_flags(const BlockFile& file, Access access) {
  return access == Access::write && file.durability == Durability::synced ? RWF_DSYNC : 0;
}

std::span<const iovec> as_iovecs(std::span<const Piece> pieces) {
  const auto* first = reinterpret_cast<const iovec*>(pieces.data());
  return {first, std::min<std::size_t>(pieces.size(), IOV_MAX)};
}

bool is_interruption(std::int64_t result) { return result == -EINTR || result == -EAGAIN; }

}  // namespace terrace

// A BlockFile describes an opened file to the queues, with the alignment that every request must satisfy.
//
// It is plain data. The descriptor is borrowed: the opener of the file closes it after the queue is
// destroyed.
#pragma once

#include <sys/uio.h>

#include <string>

#include "terrace/tier.hpp"

namespace terrace {

/// Durability says when a write counts as complete.
enum class Durability {
  device,  ///< direct I/O: the device has reported completion
  synced,  ///< page cache: each write waits until its bytes are on the device, so that it reports their
           ///< failure
};

struct BlockFile {
  int descriptor = -1;
  Bytes capacity;
  Bytes block_size;        ///< offsets and lengths are multiples of this
  Bytes memory_alignment;  ///< addresses are multiples of this
  Bytes request_size;      ///< larger requests gain no bandwidth
  unsigned depth = 1;      ///< the most requests in flight
  Durability durability = Durability::device;
  std::string tier;  ///< for messages: the tier's spec
  std::string path;  ///< for messages
};

/// Throws std::logic_error unless the request keeps the preconditions of BlockRequest and ends within the
/// file.
void check_request(const BlockFile& file, const BlockRequest& request);

/// Returns the flags of preadv2/pwritev2 and of io_uring for this access.
int request_flags(const BlockFile& file, Access access);

/// Returns the pieces as iovecs, at most as many as one call takes; the rest then shows as a short result.
std::span<const iovec> as_iovecs(std::span<const Piece> pieces);

/// Returns whether this result is an interruption, after which the request is repeated.
bool is_interruption(std::int64_t result);

/// A request is repeated at most this often, so that a device that always reports an interruption fails in
/// the end.
inline constexpr unsigned kMostInterruptions = 64;

}  // namespace terrace

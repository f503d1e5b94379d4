// BlockFile: an opened file as the queues see it, and what every request to it must satisfy.
//
// Plain data. The descriptor is borrowed: whoever opened the file closes it after the queue is gone.
#pragma once

#include <sys/uio.h>

#include <string>

#include "terrace/tier.hpp"

namespace terrace {

/// When a write counts as done.
enum class Durability {
  device,  ///< direct I/O: the device answered
  synced,  ///< page cache: each write waits until its bytes are on the device, so that it sees its failure
};

struct BlockFile {
  int descriptor = -1;
  Bytes capacity;
  Bytes block_size;        ///< offsets and lengths are multiples of this
  Bytes memory_alignment;  ///< addresses are multiples of this
  Bytes request_size;      ///< the largest request worth making
  unsigned depth = 1;      ///< most requests in flight
  Durability durability = Durability::device;
  std::string tier;  ///< for messages: the tier's spec
  std::string path;  ///< for messages
};

/// Throws std::logic_error unless the request keeps the preconditions of BlockRequest and ends within the
/// file.
void check_request(const BlockFile& file, const BlockRequest& request);

/// The flags of preadv2/pwritev2 and of io_uring for this access.
int request_flags(const BlockFile& file, Access access);

/// The pieces as the system wants them: at most as many as one call takes, the rest is left to a short
/// result.
std::span<const iovec> as_iovecs(std::span<const Piece> pieces);

/// Whether this result means "ask again" rather than an answer.
bool is_interruption(std::int64_t result);

/// A request is asked again at most this often, so that a device that only ever says "again" is not asked
/// forever.
inline constexpr unsigned kMostInterruptions = 64;

}  // namespace terrace

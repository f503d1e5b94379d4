// A uring queue serves the BlockQueue contract through io_uring.
//
// submit() enters the kernel at once rather than at wait(), so that the disk works while the caller copies
// the next piece; a system call is cheap beside a request of megabytes. Registered memory is pinned until the
// queue ends or the same addresses are registered again: after mapping something else there, register it anew
// before using it here.
#pragma once

#include <memory>

#include "terrace/result.hpp"
#include "tiers/block_file.hpp"

namespace terrace {

/// Fails with `unsupported` where the kernel refuses io_uring (old, forbidden, out of rings) or the library
/// was built without it; a pool queue does the same work then. Destroying the queue waits for what is in
/// flight. pre: file.depth > 0
Result<std::unique_ptr<BlockQueue>> open_uring_queue(const BlockFile& file);

}  // namespace terrace

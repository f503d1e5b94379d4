// A pool queue serves the BlockQueue contract by a few threads that call preadv and pwritev, where io_uring
// is missing or unwanted.
#pragma once

#include <memory>

#include "tiers/block_file.hpp"

namespace terrace {

inline constexpr unsigned kDefaultPoolThreads = 4;

/// Starts up to `threads` threads, fewer where the system refuses more. Throws EnvironmentError if it refuses
/// all. Destroying the queue completes what was submitted. pre: threads > 0, file.depth > 0
std::unique_ptr<BlockQueue> open_pool_queue(const BlockFile& file, unsigned threads);

}  // namespace terrace

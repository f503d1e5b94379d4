// A BufferPool divides one range of memory into equal buffers, which the threads of several block tiers
// share.
//
// The holder of a buffer waits only for a disk before it releases the buffer, so that waiting for one always
// ends. It is thread-safe.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "terrace/tier.hpp"

namespace terrace {

class BufferPool {
 public:
  /// Borrows the memory. pre: memory holds at least one buffer
  BufferPool(std::span<std::byte> memory, std::size_t buffer_bytes);

  std::size_t buffer_bytes() const noexcept { return buffer_bytes_; }
  /// Returns a buffer, or nullptr where all are in use; `queue` is then woken when one is released.
  std::byte* acquire(BlockQueue& queue);
  void release(std::byte* buffer);

 private:
  const std::size_t buffer_bytes_;
  std::mutex mutex_;  // guards all members below
  std::vector<std::byte*> free_;
  std::vector<BlockQueue*> waiting_;
};

}  // namespace terrace

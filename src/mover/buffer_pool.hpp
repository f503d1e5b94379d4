// BufferPool: equal buffers cut from one stretch of memory, shared by the threads of several block tiers.
//
// Who holds a buffer waits for nothing but a disk before giving it back, so that waiting for one always
// ends. Thread-safe.
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
  /// A buffer, or nullptr where all are in use: then `queue` is woken when one has come back.
  std::byte* acquire(BlockQueue& queue);
  void release(std::byte* buffer);

 private:
  const std::size_t buffer_bytes_;
  std::mutex mutex_;  // guards all below
  std::vector<std::byte*> free_;
  std::vector<BlockQueue*> waiting_;
};

}  // namespace terrace

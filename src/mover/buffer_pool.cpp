// SPDX-License-Identifier: Apache-2.0
#include "mover/buffer_pool.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace terrace {

BufferPool::BufferPool(std::span<std::byte> memory, std::size_t buffer_bytes) : buffer_bytes_(buffer_bytes) {
  check(buffer_bytes > 0 && memory.size() >= buffer_bytes, "a pool holds at least one buffer");
  for (std::size_t at = 0; memory.size() - at >= buffer_bytes; at += buffer_bytes) {
    free_.push_back(memory.data() + at);
  }
}

std::byte* BufferPool::acquire(BlockQueue& queue) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (std::find(waiting_.begin(), waiting_.end(), &queue) == waiting_.end()) waiting_.push_back(&queue);
    return nullptr;
  }
  std::byte* buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void BufferPool::release(std::byte* buffer) {
  const std::lock_guard lock(mutex_);
  free_.push_back(buffer);
  for (BlockQueue* queue : waiting_) queue->wake();
  waiting_.clear();
}

}  // namespace terrace

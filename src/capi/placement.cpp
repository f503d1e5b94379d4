// SPDX-License-Identifier: Apache-2.0
#include "terrace/placement.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_set>

#include "capi/guard.hpp"

namespace {

// The shapes of c10::Allocator and c10::DataPtr: declared here, because the library is built without PyTorch.
// The order of virtual functions is all that versions differ in.
using Deleter = void (*)(void*);

struct Device {
  std::int8_t type, index;
};

struct DataPointer {
  void* data;
  std::unique_ptr<void, Deleter> context;
  Device device;
};

/// Of PyTorch 1.13.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual DataPointer allocate(std::size_t bytes) const = 0;
  virtual Deleter raw_deleter() const = 0;
  virtual void copy_data(void* to, const void* from, std::size_t bytes) const = 0;
};

/// Of PyTorch from 2.1 on.
class LaterAllocator {
 public:
  virtual ~LaterAllocator() = default;
  virtual DataPointer allocate(std::size_t bytes) = 0;
  virtual bool is_simple(const DataPointer& pointer) const = 0;
  virtual Deleter raw_deleter() const = 0;
  virtual void copy_data(void* to, const void* from, std::size_t bytes) const = 0;
};

constexpr Device kProcessor{0, -1};
constexpr std::size_t kAlignment = 64;

struct Placing {
  const std::uint64_t* bytes = nullptr;
  const std::uint64_t* addresses = nullptr;
  std::size_t count = 0, next = 0, placed = 0;

  void* take(std::size_t wanted) {
    if (next >= count) return nullptr;
    if (bytes[next] != wanted) {  // another order than the recorded one: nothing that follows is known
      count = 0;
      return nullptr;
    }
    const std::uint64_t address = addresses[next++];
    placed += address != 0;
    return reinterpret_cast<void*>(address);
  }
};

struct Recording {
  terrace_allocation* events = nullptr;
  std::size_t room = 0, count = 0;

  void note(const void* memory, std::size_t bytes) {
    if (!events) return;
    if (count < room) events[count] = {reinterpret_cast<std::uintptr_t>(memory), bytes};
    ++count;
  }
};

thread_local Placing placing;
thread_local Recording recording;

/// Placed memory in use. PyTorch frees some memory by its address alone (that of oneDNN's tensors), so
/// whether it was placed must be known by the address, too. Two allocations of a kernel may have the same
/// place: those of results that PyTorch predicts to be one tensor.
class Placed {
 public:
  void insert(void* memory) {
    const std::scoped_lock lock(mutex_);
    addresses_.insert(memory);
    count_.store(addresses_.size(), std::memory_order_release);
  }
  bool erase(void* memory) {
    if (count_.load(std::memory_order_acquire) == 0) return false;
    const std::scoped_lock lock(mutex_);
    const auto found = addresses_.find(memory);
    const bool was = found != addresses_.end();
    if (was) addresses_.erase(found);
    count_.store(addresses_.size(), std::memory_order_release);
    return was;
  }

 private:
  std::mutex mutex_;
  std::unordered_multiset<void*> addresses_;  // guarded by mutex_
  std::atomic<std::size_t> count_{0};
};

// Never destroyed: tensors are freed until the process ends.
Placed& placed_memory() {
  static Placed* const placed = new Placed;
  return *placed;
}

void release(void* memory) {
  if (!memory || placed_memory().erase(memory)) return;
  recording.note(memory, 0);
  std::free(memory);
}

void* allocate_anywhere(std::size_t bytes) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, kAlignment, bytes) != 0) throw std::bad_alloc();
  return memory;
}

DataPointer allocate_placed(std::size_t bytes) {
  if (bytes == 0) return {nullptr, {nullptr, release}, kProcessor};
  void* memory = placing.take(bytes);
  if (memory) {
    placed_memory().insert(memory);
  } else {
    memory = allocate_anywhere(bytes);
    recording.note(memory, bytes);
  }
  return {memory, {memory, release}, kProcessor};
}

class PlacingAllocator final : public Allocator {
 public:
  DataPointer allocate(std::size_t bytes) const override { return allocate_placed(bytes); }
  Deleter raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

class LaterPlacingAllocator final : public LaterAllocator {
 public:
  DataPointer allocate(std::size_t bytes) override { return allocate_placed(bytes); }
  bool is_simple(const DataPointer& pointer) const override { return pointer.data == pointer.context.get(); }
  Deleter raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

template <class Placing, class Base>
int install(void* set_allocator) {
  return terrace::capi::guarded([&] {
    terrace::capi::require(set_allocator != nullptr, "there is no function that sets PyTorch's allocator");
    static Placing allocator;
    constexpr std::uint8_t kHighestPriority = 255;
    reinterpret_cast<void (*)(Base*, std::uint8_t)>(set_allocator)(&allocator, kHighestPriority);
  });
}

}  // namespace

int terrace_placement_install(void* set_allocator) {
  return install<PlacingAllocator, Allocator>(set_allocator);
}

int terrace_placement_install_later(void* set_allocator) {
  return install<LaterPlacingAllocator, LaterAllocator>(set_allocator);
}

void terrace_placement_begin(const uint64_t* bytes, const uint64_t* addresses, size_t count) {
  placing = {bytes, addresses, count};
}

size_t terrace_placement_end(void) {
  const std::size_t placed = placing.placed;
  placing = {};
  return placed;
}

void terrace_placement_record_begin(terrace_allocation* events, size_t room) { recording = {events, room}; }

size_t terrace_placement_record_end(void) {
  const std::size_t count = recording.count;
  recording = {};
  return count;
}

// SPDX-License-Identifier: Apache-2.0
#include "pages/preload/own_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "terrace/error.hpp"
#include "tiers/mapping.hpp"

namespace terrace::pages {
namespace {

std::byte* range = nullptr;
std::size_t range_bytes = 0;
std::atomic<std::size_t> taken{0};

/// Returns the start of fresh zeroed memory, or nullptr. pre: alignment is a power of two
std::byte* take(std::size_t bytes, std::size_t alignment) {
  std::size_t at = taken.load(), start = 0;
  do {
    start = (at + alignment - 1) & ~(alignment - 1);
    if (start + bytes > range_bytes) return nullptr;
  } while (!taken.compare_exchange_weak(at, start + bytes));
  return range + start;
}

// Small blocks are kept by powers of two and used again. A spin lock will do: few threads, few blocks.
struct Block {
  Block* next;
};
constexpr std::size_t kClasses = 32;
Block* free_blocks[kClasses];
std::atomic_flag busy = ATOMIC_FLAG_INIT;

struct Guard {
  Guard() {
    while (busy.test_and_set(std::memory_order_acquire)) sched_yield();
  }
  ~Guard() { busy.clear(std::memory_order_release); }
};

constexpr std::size_t kHead = 16;

void* allocate(std::size_t bytes) {
  const std::size_t whole = std::bit_ceil(bytes + kHead),
                    kind = static_cast<std::size_t>(std::bit_width(whole)) - 1;
  if (kind >= kClasses) return nullptr;
  std::byte* block = nullptr;
  {
    const Guard guard;
    if (free_blocks[kind] != nullptr) {
      block = reinterpret_cast<std::byte*>(free_blocks[kind]);
      free_blocks[kind] = free_blocks[kind]->next;
    }
  }
  if (block == nullptr) block = take(whole, kHead);
  if (block == nullptr) return nullptr;
  std::memcpy(block, &kind, sizeof kind);
  return block + kHead;
}

void release(void* memory) {
  if (memory == nullptr) return;
  std::byte* const start = static_cast<std::byte*>(memory) - kHead;
  std::size_t kind = 0;
  std::memcpy(&kind, start, sizeof kind);
  const Guard guard;
  auto* const block = reinterpret_cast<Block*>(start);
  block->next = free_blocks[kind];
  free_blocks[kind] = block;
}

void* allocate_or_throw(std::size_t bytes) {
  void* const memory = allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

int reserve_own_memory(std::size_t bytes) {
  // Past the wrapper of mmap, which would have it managed. Two megabytes more, to align it.
  const std::size_t whole = bytes + kHugePage.count;
  const long start = syscall(SYS_mmap, nullptr, whole, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == -1) return errno;
  const auto address = static_cast<std::uintptr_t>(start);
  const std::uintptr_t aligned = (address + kHugePage.count - 1) & ~(kHugePage.count - 1);
  range = reinterpret_cast<std::byte*>(aligned);
  range_bytes = whole - (aligned - address);
  madvise(range, range_bytes, MADV_NOHUGEPAGE);
  madvise(range, range_bytes, MADV_DONTDUMP);
  return 0;
}

void own_memory_in_child() { busy.clear(); }

std::uintptr_t own_start() { return reinterpret_cast<std::uintptr_t>(range); }
std::uintptr_t own_end() { return own_start() + range_bytes; }

}  // namespace terrace::pages

// What tiers/mapping.cpp does elsewhere.
namespace terrace {

Bytes page_size() { return {4096}; }

Mapping map_anonymous(Bytes size, const std::string& name) {
  const std::size_t bytes = round_up(size, page_size()).count;
  std::byte* const start = pages::take(bytes, kHugePage.count);
  if (start == nullptr)
    throw EnvironmentError(
        fmt::format("there is no room for {} of addresses for {}: ask for less", readable(size), name),
        {name, {}, 0, ENOMEM});
  return {start, bytes};
}

Mapping::~Mapping() {
  if (start_ != nullptr) madvise(start_, bytes_, MADV_DONTNEED);
}

}  // namespace terrace

void* operator new(std::size_t bytes) { return terrace::pages::allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return terrace::pages::allocate_or_throw(bytes); }
void operator delete(void* memory) noexcept { terrace::pages::release(memory); }
void operator delete[](void* memory) noexcept { terrace::pages::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { terrace::pages::release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { terrace::pages::release(memory); }

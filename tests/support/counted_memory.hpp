// SPDX-License-Identifier: Apache-2.0
// Counts what a test program takes with `new`. One file of a program includes it, because it replaces the
// operators. A sanitizer has an allocator of its own, which must stay whole: nothing is counted there.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace terrace::counted {

inline std::atomic<std::size_t> bytes{0}, most_bytes{0};
inline std::atomic<std::ptrdiff_t> live{0};

/// Allocations larger than this are counted.
constexpr std::size_t kLarge = 4096;
inline std::atomic<std::size_t> large_allocations{0};

/// In front of each allocation, because what malloc says of a large alignment is far more than was asked for.
struct Note {
  std::size_t size, before;  ///< bytes that were asked for, and bytes of memory in front of them
};

inline void* take(std::size_t size, std::size_t alignment) {
  if (size > kLarge) ++large_allocations;
  ++live;
  const std::size_t before = std::max(alignment, sizeof(Note));
  void* memory = std::aligned_alloc(alignment, (before + size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t now = bytes += size;
  for (std::size_t most = most_bytes; now > most && !most_bytes.compare_exchange_weak(most, now);) continue;
  std::byte* const given = static_cast<std::byte*>(memory) + before;
  new (given - sizeof(Note)) Note{size, before};
  return given;
}

inline void give(void* memory) noexcept {
  if (memory == nullptr) return;
  --live;
  const Note note = *std::launder(reinterpret_cast<Note*>(static_cast<std::byte*>(memory) - sizeof(Note)));
  bytes -= note.size;
  std::free(static_cast<std::byte*>(memory) - note.before);
}

/// The most that was held at once since it was made, beside what was held before.
class Peak {
 public:
  Peak() : before_(bytes) { most_bytes = before_; }
  std::size_t get() const { return most_bytes - before_; }

 private:
  std::size_t before_;
};

}  // namespace terrace::counted

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TERRACE_COUNTS_ALLOCATIONS 1
void* operator new(std::size_t size) { return terrace::counted::take(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return terrace::counted::take(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { terrace::counted::give(memory); }
void operator delete(void* memory, std::size_t) noexcept { terrace::counted::give(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { terrace::counted::give(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { terrace::counted::give(memory); }
#endif

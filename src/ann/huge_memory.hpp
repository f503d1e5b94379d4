// SPDX-License-Identifier: Apache-2.0
// HugeVector: a vector whose memory begins at a cache line, and lies in huge pages where it is large and the
// system has some. A walk through a graph touches memory at random: with small pages it waits for their
// addresses as long as for the bytes.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace terrace::ann {

template <class T>
struct HugeAllocator {
  using value_type = T;
  static constexpr std::size_t kLine = 64, kPage = 2U << 20;

  HugeAllocator() = default;
  template <class Other>
  HugeAllocator(const HugeAllocator<Other>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* memory = ::operator new(bytes, alignment(bytes));
    // Where it is refused, small pages do.
    if (bytes >= kPage) madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    ::operator delete(memory, alignment(count * sizeof(T)));  // clang 14 has none that takes the size
  }
  bool operator==(const HugeAllocator&) const { return true; }

 private:
  static std::align_val_t alignment(std::size_t bytes) {
    return std::align_val_t{bytes >= kPage ? kPage : kLine};
  }
};

/// Has memory that was filled already lie in huge pages, as far as the system can.
inline void make_huge(const void* memory, std::size_t bytes) {
  constexpr std::uintptr_t kPage = HugeAllocator<char>::kPage;
  const auto first = (reinterpret_cast<std::uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / kPage * kPage;
  if (first >= end) return;
  void* const start = reinterpret_cast<void*>(first);
  madvise(start, end - first, MADV_HUGEPAGE);
  // MADV_COLLAPSE came with Linux 6.1 and is not in every header; older systems refuse the number.
  constexpr int kCollapse = 25;
  madvise(start, end - first, kCollapse);
}

template <class T>
using HugeVector = std::vector<T, HugeAllocator<T>>;

}  // namespace terrace::ann

// SPDX-License-Identifier: Apache-2.0
// HugeVector: a vector whose memory begins at a cache line, and lies in huge pages where it is large and the
// system has some. A walk through a graph touches memory at random: with small pages it waits for their
// addresses as long as for the bytes.
#pragma once

#include <sys/mman.h>

#include <cstddef>
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

template <class T>
using HugeVector = std::vector<T, HugeAllocator<T>>;

}  // namespace terrace::ann

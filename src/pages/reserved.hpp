// SPDX-License-Identifier: Apache-2.0
// Reserved is a zeroed array of fixed size in pages of its own, which cost nothing until they are touched.
//
// The pager's tables live in such memory, never in a heap: the heap of a program that runs in less memory is
// itself managed, and whoever serves faults must not fault.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

#include "tiers/mapping.hpp"

namespace terrace::pages {

template <class T>
class Reserved {
 public:
  /// Throws EnvironmentError where the system refuses. `what` names the array in the message.
  Reserved(std::size_t count, const char* what)
      : memory_(map_anonymous(Bytes{count * sizeof(T)}, what)), count_(count) {
    madvise(memory_.data(), memory_.size(), MADV_NOHUGEPAGE);
    madvise(memory_.data(), memory_.size(), MADV_DONTDUMP);
  }

  std::size_t size() const noexcept { return count_; }
  T* data() noexcept { return reinterpret_cast<T*>(memory_.data()); }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return reinterpret_cast<const T*>(memory_.data())[i]; }

 private:
  Mapping memory_;
  std::size_t count_;
};

}  // namespace terrace::pages

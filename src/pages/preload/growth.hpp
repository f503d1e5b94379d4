// SPDX-License-Identifier: Apache-2.0
// Growth has memory managed that the C library's malloc has just taken from the system, before the program
// gets it. malloc extends the heap and maps blocks without asking anybody; the layout (layout.hpp) finds that
// within milliseconds, in which a program can touch more memory than it was given. So each block that malloc
// returns is compared with what is known to be managed, which takes a few instructions.
//
// It looks into the header of a block as glibc keeps it, and so only where the block is glibc's. Any thread
// may call it, also while others do; it takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "pages/geometry.hpp"

namespace terrace::pages {

class Service;

class Growth {
 public:
  /// Everything that malloc has taken so far is managed, or about to be.
  void start();
  /// malloc has returned this block.
  void block(Service& service, const void* block);

 private:
  void arena(Service& service, Address block);

  std::atomic<Address> heap_end_{0};                // managed up to here
  std::array<std::atomic<Address>, 256> arenas_{};  // those seen last
};

/// Returns how many bytes of a block realloc() would copy into memory that is not managed yet; 0 where it
/// need not copy, or too little to matter.
std::size_t copied_by_realloc(const void* block, std::size_t bytes);

/// Returns whether the program's malloc is glibc's, whose blocks have the headers that Growth reads.
bool malloc_is_of_the_c_library();

}  // namespace terrace::pages

// SPDX-License-Identifier: Apache-2.0
// Asking the processor for memory before it is needed: a graph walk waits for little else.
#pragma once

#include <algorithm>
#include <cstddef>

namespace terrace::ann {

/// So many vectors ahead of the one whose distance is computed.
inline constexpr std::size_t kLookAhead = 4;

inline void prefetch_start(const void* memory) { __builtin_prefetch(memory); }

/// No more than the processor can wait for at once; what follows, it finds by itself.
inline void prefetch(const void* memory, std::size_t bytes) {
  constexpr std::size_t kLine = 64, kMost = 8 * kLine;
  const char* start = static_cast<const char*>(memory);
  for (std::size_t at = 0; at < std::min(bytes, kMost); at += kLine) __builtin_prefetch(start + at);
}

}  // namespace terrace::ann

// stream_copy() copies memory past the caches: the bytes that a mover copies are not used soon, so they
// should not displace others.
//
// Small copies, which fit in a cache together with their destination, use memcpy, which is faster there.
// Large ones write with non-temporal stores and read four pages at a time, so that as many hardware
// prefetchers run concurrently. It has no state and is thread-safe.
#pragma once

#include <cstddef>
#include <span>

namespace terrace {

/// Copies bytes, which other threads see once they synchronise with this one as usual. pre: the ranges do not
/// overlap
void stream_copy(void* to, const void* from, std::size_t bytes);

/// A CopyPath is one implementation; `available` says whether this processor supports it.
struct CopyPath {
  const char* name;
  bool available;
  void (*copy_group)(std::byte* to, const std::byte* from);  ///< kCopyGroup bytes; `to` is a multiple of 64
};
inline constexpr std::size_t kCopyGroup = 4 * 4096;

/// Returns all implementations, the fastest first; the last is always available.
std::span<const CopyPath> copy_paths();
/// Copies with a given implementation, whatever the size. pre: path.available
void stream_copy(const CopyPath& path, void* to, const void* from, std::size_t bytes);
/// Returns the size from which stream_copy bypasses the caches.
std::size_t stream_threshold();

}  // namespace terrace

// Copies memory past the caches: what a mover carries is not used soon, so it should not push out what is.
//
// Small copies, that fit in a cache together with their destination, are left to memcpy, which is faster
// there. Large ones write with non-temporal stores and read four pages at a time, so that as many hardware
// prefetchers run side by side. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>

namespace terrace {

/// pre: the ranges do not overlap. Other threads see the bytes once they synchronise with this one as usual.
void stream_copy(void* to, const void* from, std::size_t bytes);

/// One way to do it. `available` on this processor.
struct CopyPath {
  const char* name;
  bool available;
  void (*copy_group)(std::byte* to, const std::byte* from);  ///< kCopyGroup bytes; `to` is a multiple of 64
};
inline constexpr std::size_t kCopyGroup = 4 * 4096;

/// All ways, the fastest first; the last is always available.
std::span<const CopyPath> copy_paths();
/// stream_copy by a given way, whatever the size. pre: path.available
void stream_copy(const CopyPath& path, void* to, const void* from, std::size_t bytes);
/// From this size on stream_copy goes past the caches.
std::size_t stream_threshold();

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "pages/preload/growth.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include "pages/service.hpp"

namespace terrace::pages {
namespace {

// Before a block glibc's malloc keeps the size of what lies before it, and its own with three flags.
struct Header {
  std::size_t before, size;
};
constexpr std::size_t kMapped = 2, kOfAnArena = 4, kFlags = 7;
constexpr Address kArena = Address{64} << 20;  // the size and alignment of what arenas take at once

constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }

}  // namespace

bool malloc_is_of_the_c_library() {
  // A program that brings a malloc of its own never calls ours. One in another library comes behind ours.
  Dl_info of_malloc{}, of_library{};
  void* const next = dlsym(RTLD_NEXT, "malloc");
  void* const version = dlsym(RTLD_NEXT, "gnu_get_libc_version");
  return next != nullptr && version != nullptr && dladdr(next, &of_malloc) != 0 &&
         dladdr(version, &of_library) != 0 && of_malloc.dli_fbase == of_library.dli_fbase;
}

// A block that grows by little may grow in its place, again and again; what doubles is copied rarely.
std::size_t copied_by_realloc(const void* block, std::size_t bytes) {
  constexpr std::size_t kMatters = 256 << 10;
  if (block == nullptr || bytes < kMatters) return 0;
  const auto* const header = reinterpret_cast<const Header*>(block) - 1;
  const std::size_t usable = (header->size & ~kFlags) - sizeof(std::size_t);
  return (header->size & kMapped) == 0 && bytes >= usable + usable / 2 ? usable : 0;
}

void Growth::start() {
  heap_end_ = reinterpret_cast<Address>(sbrk(0));
  for (std::atomic<Address>& arena : arenas_) arena = 0;
}

void Growth::block(Service& service, const void* block) {
  const auto at = reinterpret_cast<Address>(block);
  const auto* const header = reinterpret_cast<const Header*>(block) - 1;
  if ((header->size & kMapped) != 0) {
    const Address start = at - sizeof(Header) - header->before;
    service.manage(start, whole_pages(header->before + (header->size & ~kFlags)));
  } else if ((header->size & kOfAnArena) != 0) {
    arena(service, at & ~(kArena - 1));
  } else if (const auto end = reinterpret_cast<Address>(sbrk(0));
             end != heap_end_.load(std::memory_order_relaxed)) {
    const Address start = heap_end_.exchange(end) & ~(kPage - 1);
    if (start < end) service.manage(start, whole_pages(end - start));
  }
}

/// An arena's addresses are reserved at once and become memory piece by piece; all of them can be managed
/// from the start.
void Growth::arena(Service& service, Address start) {
  std::atomic<Address>& known = arenas_[start / kArena % arenas_.size()];
  if (known.load(std::memory_order_relaxed) == start) return;
  service.manage(start, kArena);
  known = start;
}

}  // namespace terrace::pages

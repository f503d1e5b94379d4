// SPDX-License-Identifier: Apache-2.0
#include "pages/preload/descriptors.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace terrace::pages {
namespace {

constexpr unsigned kMostDescriptors = 65536;
std::atomic<bool> ours[kMostDescriptors];

}  // namespace

bool is_ours(unsigned descriptor) {
  return descriptor < kMostDescriptors && ours[descriptor].load(std::memory_order_relaxed);
}

void mark(int descriptor, bool mine) {
  if (descriptor >= 0 && descriptor < static_cast<int>(kMostDescriptors)) ours[descriptor] = mine;
}

int plain_close(int descriptor) { return static_cast<int>(syscall(SYS_close, descriptor)); }

int copy_onto(int from, int to, int flags) {
  if (is_ours(static_cast<unsigned>(to))) return errno = EBUSY, -1;
  return static_cast<int>(syscall(SYS_dup3, from, to, flags));
}

int close_all(unsigned first, unsigned last, int flags) {
  if (first > last) return errno = EINVAL, -1;
  for (unsigned start = first; start <= last;) {
    unsigned end = start;
    while (end < kMostDescriptors && end < last && !is_ours(end)) ++end;
    // Beyond the table nothing is ours.
    const unsigned stop = end >= kMostDescriptors ? last : is_ours(end) ? end : end + 1;
    const bool any = end >= kMostDescriptors || stop > start;
    if (any && syscall(SYS_close_range, start, end >= kMostDescriptors ? last : stop - 1, flags) != 0)
      return -1;
    if (end >= kMostDescriptors || end >= last) break;
    start = end + 1;
  }
  return 0;
}

}  // namespace terrace::pages

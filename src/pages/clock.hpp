// SPDX-License-Identifier: Apache-2.0
// Time for figures: nanoseconds of a clock that never goes back.
#pragma once

#include <time.h>

#include <cstdint>

namespace terrace::pages {

inline std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// What the calling thread has computed so far.
inline std::uint64_t own_work_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace terrace::pages

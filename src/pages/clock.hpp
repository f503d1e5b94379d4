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

}  // namespace terrace::pages

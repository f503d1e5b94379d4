// SPDX-License-Identifier: Apache-2.0
#include "math/level.hpp"

#include <atomic>

#include "base/check.hpp"

namespace terrace::math {
namespace {

Level find_best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    return Level::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Level::avx2;
#endif
  return Level::baseline;
}

std::atomic<Level>& current() {
  static std::atomic<Level> level{best_level()};
  return level;
}

}  // namespace

Level best_level() {
  static const Level best = find_best();
  return best;
}

Level level() { return current().load(std::memory_order_relaxed); }

ForcedLevel::ForcedLevel(Level forced) : previous_(level()) {
  check(forced <= best_level(), "the forced level is one that this processor lacks");
  current().store(forced, std::memory_order_relaxed);
}

ForcedLevel::~ForcedLevel() { current().store(previous_, std::memory_order_relaxed); }

}  // namespace terrace::math

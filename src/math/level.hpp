// SPDX-License-Identifier: Apache-2.0
// The instruction set that our own loops run on, chosen while the program runs.
//
// A loop is written once, as a function object over a contiguous range. `run_at` keeps one copy of it per
// level, into which everything the loop calls is inlined, so the compiler vectorises each copy for its level.
// Levels contract and add in different orders, so results agree to a few last bits; within one level they are
// the same bits every time.
#pragma once

#include <cstdint>

namespace terrace::math {

enum class Level { baseline, avx2, avx512 };

/// The highest level this processor has.
Level best_level();
/// The level kernels run on: the best one unless a ForcedLevel says otherwise.
Level level();

/// Makes every kernel of the process run on one level while it lives, for comparing levels. Not thread-safe.
class ForcedLevel {
 public:
  /// pre: `forced` is at most best_level(); otherwise throws logic_error
  explicit ForcedLevel(Level forced);
  ForcedLevel(const ForcedLevel&) = delete;
  ForcedLevel& operator=(const ForcedLevel&) = delete;
  ~ForcedLevel();

 private:
  Level previous_;
};

namespace detail {

// Target strings must be literals. Clang, which builds this for fuzzers and linters alone, has no preferred
// vector width and vectorises less, which is no error.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#endif
#if defined(__x86_64__) && defined(__clang__)
#define TERRACE_AVX2 gnu::target("avx2,fma"), gnu::flatten
#define TERRACE_AVX512 gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"), gnu::flatten
#elif defined(__x86_64__)
#define TERRACE_AVX2 gnu::target("avx2,fma"), gnu::flatten
#define TERRACE_AVX512 \
  gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prefer-vector-width=512"), gnu::flatten
#else
#define TERRACE_AVX2 gnu::flatten
#define TERRACE_AVX512 gnu::flatten
#endif

// By value: only a copy whose address stays here can live in registers beside stores of the same type.
template <class Body>
[[TERRACE_AVX512]] auto run_avx512(Body body, std::int64_t begin, std::int64_t end) {
  return body(begin, end);
}
template <class Body>
[[TERRACE_AVX2]] auto run_avx2(Body body, std::int64_t begin, std::int64_t end) {
  return body(begin, end);
}
template <class Body>
[[gnu::flatten]] auto run_baseline(Body body, std::int64_t begin, std::int64_t end) {
  return body(begin, end);
}

#undef TERRACE_AVX2
#undef TERRACE_AVX512

}  // namespace detail

/// Returns body(begin, end), compiled for `chosen`. pre: `chosen` is at most best_level()
template <class Body>
auto run_at(Level chosen, Body body, std::int64_t begin, std::int64_t end) {
  switch (chosen) {
    case Level::avx512:
      return detail::run_avx512(body, begin, end);
    case Level::avx2:
      return detail::run_avx2(body, begin, end);
    case Level::baseline:
      break;
  }
  return detail::run_baseline(body, begin, end);
}

}  // namespace terrace::math

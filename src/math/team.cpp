// SPDX-License-Identifier: Apache-2.0
#include "math/team.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace terrace::math {
namespace {

// The thread sanitizer does not see into the OpenMP library: these tell it that a team starts after its
// caller and the caller goes on after its team.
#if defined(__SANITIZE_THREAD__)
void hand_over(void* token) { __tsan_release(token); }
void take_over(void* token) { __tsan_acquire(token); }
#else
void hand_over(void*) {}
void take_over(void*) {}
#endif

}  // namespace

#ifdef _OPENMP
std::int64_t team_size() { return omp_get_max_threads(); }
void set_team_size(unsigned threads) { omp_set_num_threads(static_cast<int>(threads)); }
#else
std::int64_t team_size() { return 1; }
void set_team_size(unsigned) {}
#endif

namespace detail {

#ifdef _OPENMP
// Always the whole team: the OpenMP library ends threads that a smaller team leaves out, and starts them
// again.
__attribute__((no_sanitize("thread"))) void run_team(std::int64_t pieces,
                                                     void (*run)(void*, std::int64_t) noexcept,
                                                     void* context) {
  char token = 0;
  hand_over(&token);
#pragma omp parallel default(none) shared(pieces, run, context, token)
  {
    take_over(&token);
    for (std::int64_t piece = omp_get_thread_num(); piece < pieces; piece += omp_get_num_threads()) {
      run(context, piece);
    }
    hand_over(&token);
  }
  take_over(&token);
}
#else
void run_team(std::int64_t pieces, void (*run)(void*, std::int64_t) noexcept, void* context) {
  for (std::int64_t piece = 0; piece < pieces; ++piece) run(context, piece);
}
#endif

}  // namespace detail
}  // namespace terrace::math

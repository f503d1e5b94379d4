// SPDX-License-Identifier: Apache-2.0
// The team of threads of math/team.hpp without OpenMP, for a library that lives beside a
// framework with a team of its own. Only calibration uses it here, so threads are started anew each time.
#include <thread>
#include <vector>

#include "base/system.hpp"
#include "math/team.hpp"

namespace terrace::math {
namespace {

thread_local std::int64_t size_of_team = 0;  // 0: as many as this process can keep busy

}  // namespace

std::int64_t team_size() {
  if (size_of_team == 0) size_of_team = probe_cores().usable();
  return size_of_team;
}

void set_team_size(unsigned threads) { size_of_team = threads; }

namespace detail {

void run_team(std::int64_t pieces, void (*run)(void*, std::int64_t) noexcept, void* context) {
  const std::int64_t members = team_size();
  const auto work = [=](std::int64_t member) {
    for (std::int64_t piece = member; piece < pieces; piece += members) run(context, piece);
  };
  std::vector<std::jthread> others;
  for (std::int64_t member = 1; member < members; ++member) others.emplace_back(work, member);
  work(0);
}

}  // namespace detail
}  // namespace terrace::math

// SPDX-License-Identifier: Apache-2.0
// The one place where our own loops meet OpenMP: its team of threads works through numbered pieces.
//
// The calling thread is a member of the team and returns when all pieces are done. Which pieces exist is the
// caller's choice, so results can be made independent of the team's size.
#pragma once

#include <cstdint>

namespace terrace::math {

/// Returns how many threads OpenMP would give a team now.
std::int64_t team_size();
/// Teams that the calling thread starts have so many from here on. pre: at least one
void set_team_size(unsigned threads);

namespace detail {
void run_team(std::int64_t pieces, void (*run)(void* context, std::int64_t piece) noexcept, void* context);
}

/// Calls body(piece) once for each piece in [0, pieces), dealt in turn to the members of the team. A body
/// that throws ends the process: whatever can fail is checked before.
template <class Body>
void for_pieces(std::int64_t pieces, Body body) {
  if (pieces == 1) return body(std::int64_t{0});
  detail::run_team(
      pieces, [](void* context, std::int64_t piece) noexcept { (*static_cast<Body*>(context))(piece); },
      &body);
}

}  // namespace terrace::math

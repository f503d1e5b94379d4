// SPDX-License-Identifier: Apache-2.0
// A broken precondition is a bug in the caller. It is reported by std::logic_error with its place: the
// library never aborts the process it lives in, and a wrong call must not go on to lose data.
#pragma once

#include <stdexcept>
#include <string>

namespace terrace {

// The builtins stand in for std::source_location, which clang 14 cannot take from this standard library.
inline void check(bool holds, const char* what, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (holds) [[likely]]
    return;
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

}  // namespace terrace

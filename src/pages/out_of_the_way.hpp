// SPDX-License-Identifier: Apache-2.0
// Descriptors that a program does not know of must not have the numbers that it chooses for its own.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace terrace::pages {

/// Returns the same open file under a high number and closes the old one: programs and shells name low
/// numbers themselves, as in `exec 3>log`. Where the limit on open files forbids it the old one is returned,
/// and so is a negative one.
inline int out_of_the_way(int descriptor) {
  constexpr int kLeast = 700;
  const int moved = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, kLeast);
  if (moved < 0) return descriptor;
  close(descriptor);
  return moved;
}

}  // namespace terrace::pages

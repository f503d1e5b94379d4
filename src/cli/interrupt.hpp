// SPDX-License-Identifier: Apache-2.0
// The wish to stop: the first SIGINT (Ctrl-C) or SIGTERM while an Interrupt lives sets a flag that long work
// looks at between steps; the second one ends the process as it always does. One at a time.
#pragma once

#include <csignal>

namespace terrace::cli {

class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  bool requested() const;

 private:
  struct sigaction interrupted_ {};  ///< what was there before
  struct sigaction terminated_ {};
};

}  // namespace terrace::cli

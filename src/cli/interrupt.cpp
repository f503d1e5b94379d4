// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.hpp"

namespace terrace::cli {
namespace {

volatile std::sig_atomic_t requested_flag = 0;

void note_interrupt(int) { requested_flag = 1; }

}  // namespace

Interrupt::Interrupt() {
  requested_flag = 0;
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  // Once: the next one finds the default again. Reads and writes under way are not broken off.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &interrupted_);
  sigaction(SIGTERM, &action, &terminated_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &interrupted_, nullptr);
  sigaction(SIGTERM, &terminated_, nullptr);
}

bool Interrupt::requested() const { return requested_flag != 0; }

}  // namespace terrace::cli

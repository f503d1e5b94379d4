// SPDX-License-Identifier: Apache-2.0
// A Wakeful keeps a processor that has nothing to do from going to sleep while a read is under way.
//
// Waking one for the disk's interrupt, or for the thread whose page has come, takes tens of microseconds,
// most of all where the processor is virtual and sleeping leaves the virtual machine. So one thread of the
// lowest class looks on for as long as reads go on: whoever has work takes the processor from it at once.
//
// It may lie in memory that processes share. The thread is best another process's: a processor that runs a
// thread of this one must be told of every page that is taken out.
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "pages/clock.hpp"

namespace terrace::pages {

class Wakeful {
 public:
  /// A read has begun, or has brought a page that somebody waits for.
  void stay_awake() {
    until_ns_.store(now_ns() + kAwakeNs, std::memory_order_relaxed);
    if (asleep_.load() != 0 && asleep_.exchange(0) != 0) futex(FUTEX_WAKE, 1);
  }
  void stop() {
    stopping_ = true;
    asleep_ = 0;
    futex(FUTEX_WAKE, 1);
  }

  /// What its thread does until stop().
  void run() {
    const sched_param none{};
    if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) return;
    while (!stopping_) {
      if (now_ns() < until_ns_.load(std::memory_order_relaxed)) {
        for (int i = 0; i < kLooks; ++i) __builtin_ia32_pause();
        continue;
      }
      asleep_ = 1;
      // A read that began in between has found nobody asleep.
      if (now_ns() >= until_ns_.load() && !stopping_) futex(FUTEX_WAIT, 1);
      asleep_ = 0;
    }
  }

 private:
  static constexpr std::uint64_t kAwakeNs = 300'000;
  static constexpr int kLooks = 64;

  void futex(int operation, std::uint32_t value) {
    syscall(SYS_futex, &asleep_, operation, value, nullptr, nullptr, 0);
  }

  std::atomic<std::uint64_t> until_ns_{0};
  std::atomic<std::uint32_t> asleep_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace terrace::pages

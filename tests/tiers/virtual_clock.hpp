// SPDX-License-Identifier: Apache-2.0
// A clock for tests that moves only when every thread taking part is asleep: hours pass in no time, and the
// order of wakings does not depend on the computer.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

#include "base/clock.hpp"

namespace terrace {

class VirtualClock final : public Clock {
 public:
  /// Everybody sleeps longer than asked for, like threads of a real system: `usual`, and once in `period`
  /// sleeps `seldom`.
  struct Oversleep {
    Time usual{0}, seldom{0};
    unsigned period = 1000;
  };
  explicit VirtualClock(Oversleep oversleep) : oversleep_(oversleep) {}

  Time now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }

  void sleep_until(Time time) override {
    std::unique_lock lock(mutex_);
    if (time <= now_) return;
    const bool seldom = ++sleeps_ % oversleep_.period == 0;
    pass_until(time + (seldom ? oversleep_.seldom : oversleep_.usual), lock);
  }

  /// The calling thread is busy for this long.
  void work(Time duration) {
    std::unique_lock lock(mutex_);
    pass_until(now_ + duration, lock);
  }

  /// Threads that will sleep here. Time stands still until all of them do.
  void join(unsigned threads = 1) {
    const std::lock_guard lock(mutex_);
    threads_ += threads;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --threads_;
    advance();
  }

 private:
  void pass_until(Time time, std::unique_lock<std::mutex>& lock) {
    sleepers_.insert(time);
    advance();
    changed_.wait(lock, [&] { return now_ >= time; });
  }

  // A thread counts as asleep until time has passed its alarm, not until it has run again: so the alarm is
  // taken out here.
  void advance() {
    if (sleepers_.empty() || sleepers_.size() < threads_) return;
    now_ = *sleepers_.begin();
    sleepers_.erase(sleepers_.begin());
    changed_.notify_all();
  }

  const Oversleep oversleep_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  Time now_{1'000'000'000};
  std::multiset<Time> sleepers_;
  unsigned threads_ = 1;
  unsigned sleeps_ = 0;
};

}  // namespace terrace

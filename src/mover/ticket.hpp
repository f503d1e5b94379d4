// A Ticket is the completion of a transfer that jobs of several engines share; the last job to close it
// completes the transfer. It is thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "mover/failure.hpp"
#include "mover/links.hpp"
#include "terrace/mover.hpp"

namespace terrace {

class Ticket {
 public:
  Ticket(Priority priority, std::size_t jobs) : priority_(priority), open_(jobs), done_(jobs == 0) {}

  Priority priority() const noexcept { return priority_.load(std::memory_order_relaxed); }
  void raise() noexcept { priority_.store(Priority::urgent, std::memory_order_relaxed); }

  bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Returns whether some job failed, so that the others may stop early.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }

  /// Records a failure; the first one is kept.
  void fail(const Failure& failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = failure;
    failed_.store(true, std::memory_order_release);
  }

  /// Records that one job has ended. After the last one this object may be destroyed.
  void close() noexcept {
    const std::lock_guard lock(mutex_);
    if (--open_ > 0) return;
    ended_at_ = std::chrono::steady_clock::now();
    done_.store(true, std::memory_order_release);
    ended_.notify_all();
  }

  /// Returns when every job is closed.
  void wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return open_ == 0; });
  }

  /// pre: done()
  std::chrono::steady_clock::time_point ended_at() const noexcept { return ended_at_; }
  /// Throws if the transfer failed. pre: done()
  void require_success() const {
    if (failure_) failure_->raise();
  }

 private:
  std::atomic<Priority> priority_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  // guards all members below; failure_ and ended_at_ are constant once done
  std::condition_variable ended_;
  std::optional<Failure> failure_;
  std::chrono::steady_clock::time_point ended_at_ = std::chrono::steady_clock::now();
  std::size_t open_;
  std::atomic<bool> done_;
};

/// A Job is the part of a transfer over one link, on which one engine works.
struct Job {
  Job(Ticket& the_ticket, LinkEnds the_link, LinkTable& the_links)
      : ticket(the_ticket), link(the_link), links(the_links) {}

  /// Ends the job. pre: the caller keeps the transfer alive
  void close(bool complete) noexcept {
    links.close(link, complete);
    ticket.close();
  }

  Ticket& ticket;
  LinkEnds link;
  LinkTable& links;
};

}  // namespace terrace

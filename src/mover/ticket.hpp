// Ticket: the shared end of a transfer. Jobs of several engines hold it open; the last one to close it
// completes the transfer. Thread-safe.
#pragma once

#include <atomic>
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
  /// Some job failed: the others may stop early.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }

  /// The first failure is kept.
  void fail(const Failure& failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = failure;
    failed_.store(true, std::memory_order_release);
  }

  /// One job has ended. After the last one this object may be gone.
  void close() noexcept {
    const std::lock_guard lock(mutex_);
    if (--open_ > 0) return;
    done_.store(true, std::memory_order_release);
    ended_.notify_all();
  }

  /// Returns when every job is closed.
  void wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return open_ == 0; });
  }

  /// Throws if the transfer failed. pre: done()
  void require_success() const {
    if (failure_) failure_->raise();
  }

 private:
  std::atomic<Priority> priority_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  // guards all below; failure_ is constant once done
  std::condition_variable ended_;
  std::optional<Failure> failure_;
  std::size_t open_;
  std::atomic<bool> done_;
};

/// What a transfer does over one link: the part that one engine works on.
struct Job {
  Job(Ticket& the_ticket, LinkEnds the_link, LinkTable& the_links)
      : ticket(the_ticket), link(the_link), links(the_links) {}

  /// Ends the job. The caller holds the transfer alive.
  void close(bool complete) noexcept {
    links.close(link, complete);
    ticket.close();
  }

  Ticket& ticket;
  LinkEnds link;
  LinkTable& links;
};

}  // namespace terrace

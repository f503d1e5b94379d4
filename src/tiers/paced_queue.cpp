// SPDX-License-Identifier: Apache-2.0
#include "tiers/paced_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "base/check.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

/// A request that is this late was only scheduled late, not idle, so it may start as if it had been on time.
constexpr Clock::Time kCredit = std::chrono::milliseconds(5);

/// An Alarm calls back once at a given time. It is thread-safe.
class Alarm {
 public:
  explicit Alarm(BlockQueue& queue) : queue_(queue) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      throw EnvironmentError(fmt::format("the system starts no thread that paces a disk ({}): raise the "
                                         "limit on processes (ulimit -u), or leave out the disk's limits",
                                         error.what()),
                             {"", "", 0, EAGAIN});
    }
  }
  ~Alarm() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  /// Replaces the previous alarm.
  void set(Clock::Time time) {
    {
      const std::lock_guard lock(mutex_);
      if (time_ == time) return;
      time_ = time;
    }
    changed_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (!time_) {
        changed_.wait(lock);
      } else if (const auto now = steady_clock().now(); now < *time_) {
        changed_.wait_for(lock, *time_ - now);
      } else {
        time_.reset();
        queue_.wake();
      }
    }
  }

  BlockQueue& queue_;
  std::mutex mutex_;  // guards the two members below
  std::optional<Clock::Time> time_;
  bool stopping_ = false;
  std::condition_variable changed_;
  std::thread thread_;  // declared last, because it uses everything above
};

/// Requests that wait for their turn cannot be overtaken, so the queue accepts only as many as pass within
/// this time.
constexpr Seconds kAhead{0.02};

unsigned depth_of(const BlockQueue& queue, PaceLimits limits) {
  const double slowest = limits.read.value > 0 && limits.write.value > 0
                             ? std::min(limits.read.value, limits.write.value)
                             : std::max(limits.read.value, limits.write.value);
  const double requests = slowest * kAhead.count() / static_cast<double>(queue.request_size().count);
  const double most = queue.depth();
  return static_cast<unsigned>(std::clamp(requests, std::min(2.0, most), most));
}

class PacedQueue final : public BlockQueue {
 public:
  PacedQueue(std::unique_ptr<BlockQueue> queue, BlockFile file, std::shared_ptr<SharedPace> pace)
      : queue_(std::move(queue)),
        file_(std::move(file)),
        pace_(std::move(pace)),
        depth_(depth_of(*queue_, pace_->limits())),
        alarm_(*queue_) {}

  /// Requests that still wait for their turn go to the disk at once.
  ~PacedQueue() override {
    for (Way* way : {&reads_, &writes_}) {
      for (const Waiting& one : *way) queue_->submit(one.request);
    }
  }

  Bytes block_size() const noexcept override { return queue_->block_size(); }
  Bytes memory_alignment() const noexcept override { return queue_->memory_alignment(); }
  Bytes request_size() const noexcept override { return queue_->request_size(); }
  unsigned depth() const noexcept override { return depth_; }
  bool register_memory(std::span<std::byte> memory) override { return queue_->register_memory(memory); }
  void forget_memory(std::span<std::byte> memory) override { queue_->forget_memory(memory); }

  void submit(const BlockRequest& request) override {
    check(in_flight_ < depth(), "at most depth() requests may be in flight");
    check_request(file_, request);  // here, where its author sees it, and not when its turn has come
    Way& way = request.access == Access::read ? reads_ : writes_;
    Bytes bytes;
    for (const Piece& piece : request.pieces) bytes += Bytes{piece.bytes};
    way.push_back({request, pace_->reserve(request.access, bytes, steady_clock().now())});
    hand_over();
    ++in_flight_;
  }

  std::size_t wait(std::span<BlockCompletion> completions) override {
    while (true) {
      hand_over();
      const std::size_t count = queue_->wait(completions);
      in_flight_ -= count;
      if (count > 0 || woken_.exchange(false)) return count;
      // Only the alarm has rung: a waiting request may start now.
    }
  }

  void wake() override {
    woken_ = true;
    queue_->wake();
  }

 private:
  struct Waiting {
    BlockRequest request;
    Clock::Time turn;
  };
  using Way = std::deque<Waiting>;

  /// Submits the requests whose turn has come, and sets the alarm for the next one.
  void hand_over() {
    std::optional<Clock::Time> next;
    for (Way* way : {&reads_, &writes_}) {
      const Clock::Time now = steady_clock().now();
      while (!way->empty() && way->front().turn <= now) {
        const BlockRequest request = way->front().request;
        way->pop_front();
        queue_->submit(request);
      }
      if (way->empty()) continue;
      const Clock::Time turn = way->front().turn;
      next = next ? std::min(*next, turn) : turn;
    }
    if (next) alarm_.set(*next);
  }

  std::unique_ptr<BlockQueue> queue_;
  const BlockFile file_;
  const std::shared_ptr<SharedPace> pace_;
  const unsigned depth_;
  Way reads_, writes_;
  std::size_t in_flight_ = 0;  // submitted and not yet returned by wait()
  std::atomic<bool> woken_ = false;
  Alarm alarm_;  // declared last, because it wakes the queue until it is destroyed
};

}  // namespace

Clock::Time PaceLane::reserve(Bytes bytes, Clock::Time now) {
  if (limit_.value <= 0) return now;
  // The first request, and any request after a pause, starts at once; idle time earns no credit.
  if (free_at_ < now - kCredit) free_at_ = now;
  const Clock::Time turn = std::max(free_at_, now);
  free_at_ += std::chrono::duration_cast<Clock::Time>(bytes / limit_);
  return turn;
}

std::unique_ptr<BlockQueue> pace(std::unique_ptr<BlockQueue> queue, BlockFile file,
                                 std::shared_ptr<SharedPace> pace) {
  return std::make_unique<PacedQueue>(std::move(queue), std::move(file), std::move(pace));
}

}  // namespace terrace

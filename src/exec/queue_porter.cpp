// SPDX-License-Identifier: Apache-2.0
#include "exec/queue_porter.hpp"

#include <utility>

namespace terrace {

QueuePorter::QueuePorter(std::unique_ptr<DeviceFlag> flag) : flag_(std::move(flag)) {
  thread_ = std::thread(&QueuePorter::run, this);
}

QueuePorter::~QueuePorter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void QueuePorter::hand_over(std::function<void()> job) {
  ++handed_over_;
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(job));
  changed_.notify_all();
}

void QueuePorter::wait_for(std::uint32_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over_ >= count; });
}

void QueuePorter::run() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::function<void()> job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job();
    lock.lock();
    ++over_;
    if (flag_) flag_->raise(over_);
    changed_.notify_all();
  }
}

}  // namespace terrace

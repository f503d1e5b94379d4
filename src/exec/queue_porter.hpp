// SPDX-License-Identifier: Apache-2.0
// QueuePorter: a lane on the host, for a device's queues: one thread that carries out jobs in order.
//
// A job first waits for events of the device and for other porters, then moves bytes or runs a kernel. How
// many jobs are over is counted, and a flag of the device shows the count to queues that wait. A job that
// fails, and every one after a failure, is over without having done its work: nobody waits for ever. Handing
// over and waiting are thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "terrace/device.hpp"

namespace terrace {

class QueuePorter {
 public:
  /// `flag`: nullptr where queues cannot wait for one.
  explicit QueuePorter(std::unique_ptr<DeviceFlag> flag);
  ~QueuePorter();  ///< finishes everything handed over
  QueuePorter(const QueuePorter&) = delete;

  /// `job` throws nothing.
  void hand_over(std::function<void()> job);
  /// How many jobs were handed over so far.
  std::uint32_t handed_over() const noexcept { return handed_over_; }
  /// Returns when so many jobs are over.
  void wait_for(std::uint32_t count);
  /// Comes to `count` when so many jobs are over; nullptr: wait_for() has to serve.
  DeviceFlag* flag() const noexcept { return flag_.get(); }

 private:
  void run() noexcept;

  const std::unique_ptr<DeviceFlag> flag_;
  std::uint32_t handed_over_ = 0;  // of the thread that hands over
  std::mutex mutex_;               // guards all below
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::uint32_t over_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace terrace

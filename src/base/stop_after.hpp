// Turns seconds that a user gives into a stop token, for work that reads no clock itself.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "terrace/bytes.hpp"

namespace terrace {

/// Requests a stop when the time is over, unless it is gone before. One thread waits meanwhile.
class StopAfter {
 public:
  explicit StopAfter(Seconds time);
  StopAfter(const StopAfter&) = delete;
  StopAfter& operator=(const StopAfter&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  /// Requests the stop now.
  void stop() { source_.request_stop(); }

 private:
  std::stop_source source_;
  std::mutex mutex_;
  std::condition_variable_any wakes_;
  std::jthread waits_;  ///< ends first: it uses all the others
};

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// A limit in seconds as a stop token: the library reads no clock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

namespace terrace::cli {

/// Asks for a stop when its time is over; in scope means counting.
class Deadline {
 public:
  explicit Deadline(double seconds)
      : watch_([this, seconds](const std::stop_token& ended) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any over;
          over.wait_for(lock, ended, std::chrono::duration<double>(seconds), [] { return false; });
          if (!ended.stop_requested()) source_.request_stop();
        }) {}

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread watch_;
};

}  // namespace terrace::cli

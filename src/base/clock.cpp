// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <thread>

namespace terrace {
namespace {

class SteadyClock final : public Clock {
 public:
  Time now() const override {
    return std::chrono::duration_cast<Time>(std::chrono::steady_clock::now().time_since_epoch());
  }
  void sleep_until(Time time) override {
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(time));
  }
};

}  // namespace

Clock& steady_clock() {
  static SteadyClock clock;
  return clock;
}

}  // namespace terrace

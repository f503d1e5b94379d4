// Time as a dependency, so that everything paced can be tested without waiting.
#pragma once

#include <chrono>

#include "terrace/bytes.hpp"

namespace terrace {

/// Thread-safe. Time since an arbitrary start, in nanoseconds, never going back.
class Clock {
 public:
  using Time = std::chrono::nanoseconds;

  virtual ~Clock() = default;
  virtual Time now() const = 0;
  virtual void sleep_until(Time time) = 0;
};

/// The computer's clock. One shared instance is enough: it has no state.
Clock& steady_clock();

}  // namespace terrace

// A Clock is passed as a dependency, so that code which paces itself can be tested without waiting.
#pragma once

#include <chrono>

#include "terrace/bytes.hpp"

namespace terrace {

/// A clock counts nanoseconds since an arbitrary start and never goes back. It is thread-safe.
class Clock {
 public:
  using Time = std::chrono::nanoseconds;

  virtual ~Clock() = default;
  virtual Time now() const = 0;
  virtual void sleep_until(Time time) = 0;
};

/// Returns the computer's clock. One shared instance is enough, because it has no state.
Clock& steady_clock();

}  // namespace terrace

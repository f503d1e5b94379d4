// Pacer: makes fast memory behave as slow as a device of declared rates.
//
// Each direction is a lane of virtual time. Bytes reserve their time on the lane, one after another, from
// when their owner began with them, and he sleeps until the end of what he reserved: in the long run no more
// pass than the rate allows, however many threads take part. Large amounts reserve piece by piece, so that
// all get their turn. Time in which nobody asked for anything is lost, as on a real device. Time that a
// sleeper overslept is not: the next ones may begin earlier by that amount, up to a limit. Without it a busy
// computer would emulate a slower device. Latency is owed once per operation and slept off in doses that a
// computer can sleep. Thread-safe.
#pragma once

#include <mutex>

#include "base/clock.hpp"
#include "terrace/bytes.hpp"

namespace terrace {

class Pacer {
 public:
  static constexpr Seconds kMostLateness{20e-3};

  /// The clock outlives the pacer. pre: rates are positive.
  Pacer(BytesPerSecond read, BytesPerSecond write, Seconds latency, Clock& clock);

  /// One operation that moved these bytes during the last `took`: returns when the device would be done.
  void hold(Bytes read, Bytes written, Seconds took);

 private:
  struct Lane {
    BytesPerSecond rate;
    Seconds free_at{0};  ///< the end of everything reserved

    Seconds reserve(Seconds time, Seconds earliest);
  };

  Seconds now() const;
  Seconds begin();
  Seconds reserve(Seconds read, Seconds write, Seconds started);
  Seconds sleep_off(Seconds end);
  void oversleep(Seconds time);

  Clock& clock_;
  const Clock::Time origin_;
  const Seconds latency_;

  std::mutex mutex_;  // guards all below; never held while sleeping
  Lane read_, write_;
  Seconds owed_latency_{0};
  Seconds overslept_{0};  ///< not yet made up for
};

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// A Pacer slows fast memory down to a device of declared rates.
//
// Each direction is a lane of virtual time. An operation reserves the time of its bytes on the lane, from
// when it began to copy them, and its thread sleeps until the end of its reservation: in the long run the
// rate is never exceeded, however many threads take part. Large amounts reserve piece by piece, so that
// threads alternate. Idle time earns no credit, as on a real device. Time that a thread overslept does: the
// next operations may start earlier by that amount, up to a limit, because otherwise a busy computer would
// emulate a slower device. Latency accrues once for each access that waits for another and is slept off when
// it is long enough to sleep. The pacer is thread-safe.
#pragma once

#include <mutex>

#include "base/clock.hpp"
#include "terrace/bytes.hpp"

namespace terrace {

class Pacer {
 public:
  static constexpr Seconds kMostLateness{20e-3};

  /// pre: rates are positive, and the clock outlives the pacer
  Pacer(BytesPerSecond read, BytesPerSecond write, Seconds latency, Clock& clock);

  /// Accounts for one operation that moved these bytes during the last `took`, in so many accesses one after
  /// the other; returns when the device would be done.
  void hold(Bytes read, Bytes written, Seconds took, std::uint64_t accesses = 1);

 private:
  struct Lane {
    BytesPerSecond rate;
    Seconds free_at{0};  ///< the end of everything reserved

    Seconds reserve(Seconds time, Seconds earliest);
  };

  Seconds now() const;
  Seconds begin(std::uint64_t accesses);
  Seconds reserve(Seconds read, Seconds write, Seconds started);
  Seconds sleep_off(Seconds end);
  void oversleep(Seconds time);

  Clock& clock_;
  const Clock::Time origin_;
  const Seconds latency_;

  std::mutex mutex_;  // guards all members below; never held while sleeping
  Lane read_, write_;
  Seconds owed_latency_{0};
  Seconds overslept_{0};  ///< not yet used by later operations
};

}  // namespace terrace

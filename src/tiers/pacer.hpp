// Pacer: makes fast memory behave as slow as a device of declared rates.
//
// Each direction is a lane of virtual time. Bytes reserve their time on the lane, one after another, and
// their owner sleeps until the end of what he reserved: in the long run no more pass than the rate allows,
// however many threads take part. Large amounts reserve piece by piece, so that all get their turn.
//   credit    how far back a reservation may begin where nobody says how long the copy itself took. Time
//             idled away beyond it is lost, as on a real device.
//   lateness  a sleeper woken late did not idle: that time may be used after all, up to a limit, by whoever
//             goes on at once. Without it a busy computer would emulate a slower device. Kernels, which say
//             how long they took, hand on the very amount, since others that use nothing here run between.
// Latency is owed once per operation and slept off in doses that a computer can sleep. Thread-safe.
#pragma once

#include <mutex>
#include <optional>

#include "base/clock.hpp"
#include "terrace/bytes.hpp"

namespace terrace {

class Pacer {
 public:
  static constexpr Seconds kCredit{2e-3}, kMostLateness{20e-3};

  /// The clock outlives the pacer. pre: rates are positive.
  Pacer(BytesPerSecond read, BytesPerSecond write, Seconds latency, Clock& clock);

  /// One operation that moved these bytes during the last `took` (0: not known): returns when the device
  /// would be done.
  void hold(Bytes read, Bytes written, Seconds took);

 private:
  struct Lane {
    BytesPerSecond rate;
    Seconds free_at{0};                   ///< the end of everything reserved
    Seconds left_at{0};                   ///< when somebody last left hold()
    Seconds late_since = Seconds::max();  ///< the start of the lateness not yet made up for

    Seconds reserve(Seconds time, Seconds now, std::optional<Seconds> started);
    void leave(Seconds planned, Seconds now);
  };

  Seconds now() const;
  Seconds begin(bool makes_up);
  void oversleep(Seconds time);
  Seconds reserve(Seconds read, Seconds write, std::optional<Seconds> started);
  Seconds sleep_off(Seconds end);
  void leave(Seconds read, Seconds write, Seconds planned);

  Clock& clock_;
  const Clock::Time origin_;
  const Seconds latency_;

  std::mutex mutex_;  // guards all below; never held while sleeping
  Lane read_, write_;
  Seconds owed_latency_{0};
  Seconds overslept_{0};
};

}  // namespace terrace

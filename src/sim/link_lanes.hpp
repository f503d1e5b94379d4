// SPDX-License-Identifier: Apache-2.0
// LinkLanes simulates the links of a machine: each has a queue of transfers that run in order of arrival. A
// transfer that is held holds up its queue until it is released.
//
// Speeds are constant between two events. An event is a transfer that starts or ends; after each one the
// speeds of all busy links are computed anew from which of them are busy.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "terrace/machine.hpp"
#include "terrace/simulate.hpp"

namespace terrace {

class LinkLanes {
 public:
  /// Borrows the machine.
  explicit LinkLanes(const Machine& machine);

  Seconds now() const { return now_; }
  /// Returns the share of the kernels' full speed that busy links leave.
  double kernel_speed() const { return kernel_speed_; }
  /// Returns the time until the first active transfer ends; infinite if there is none.
  Seconds next_end() const;

  /// Sets whether a kernel runs from now on, which slows links down.
  void set_computing(bool computing);

  /// Queues a transfer now; returns its number, counted from zero.
  std::size_t start(TierId from, TierId to, Bytes bytes) { return queue(from, to, bytes, false); }
  std::size_t hold(TierId from, TierId to, Bytes bytes) { return queue(from, to, bytes, true); }
  /// Lets a transfer run that was held. pre: it was queued between these tiers
  void release(TierId from, TierId to, std::size_t transfer);
  bool is_done(std::size_t transfer) const { return done_[transfer]; }
  /// Returns when the transfer was active. pre: is_done(transfer)
  Interval interval(std::size_t transfer) const { return intervals_[transfer]; }

  /// Lets time pass. pre: time <= next_end()
  void advance(Seconds time);
  /// Returns the bytes queued so far on each link that was used.
  std::vector<Traffic> moved() const;

 private:
  struct Transfer {
    std::size_t number;
    Seconds alone;  ///< its duration while nothing else runs
    bool held;
  };
  struct Lane {
    const Link* link;
    std::size_t opposite;  ///< the lane's own number if there is no opposite link
    std::deque<Transfer> queue = {};
    Seconds left{0};  ///< remaining time of the first transfer in the queue at full speed
    double speed = 1;
    Bytes moved = {};
    bool busy() const { return !queue.empty() && !queue.front().held; }
  };

  std::size_t queue(TierId from, TierId to, Bytes bytes, bool held);
  std::size_t lane_of(TierId from, TierId to) const;
  void begin_first(Lane& lane);
  void end_first(Lane& lane);
  void set_speeds();

  const Machine& machine_;
  std::vector<Lane> lanes_;
  std::vector<bool> done_;
  std::vector<Interval> intervals_;
  Seconds now_{0};
  double kernel_speed_ = 1;
  bool computing_ = false;
};

}  // namespace terrace

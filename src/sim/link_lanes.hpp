// The links of a machine on a clock: a queue of transfers each, worked through in the order they came.
//
// Speeds are constant between two events. An event is a transfer that starts or ends; after each one the
// speeds of all busy links follow anew from which of them are busy.
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
  /// What is left of the kernels' speed.
  double kernel_speed() const { return kernel_speed_; }
  /// How long until the first transfer under way ends; infinite if there is none.
  Seconds next_end() const;

  /// From now on kernels run, or none does.
  void set_computing(bool computing);

  /// Queues a transfer now; returns its number, counted from zero.
  std::size_t start(TierId from, TierId to, Bytes bytes);
  bool is_done(std::size_t transfer) const { return done_[transfer]; }
  /// When it was under way. pre: is_done(transfer)
  Interval interval(std::size_t transfer) const { return intervals_[transfer]; }

  /// Lets time pass. pre: time <= next_end()
  void advance(Seconds time);
  /// Lets time pass until the transfer is done.
  void finish(std::size_t transfer);
  void finish_all();

  /// Bytes queued so far, by link, where there were any.
  std::vector<Traffic> moved() const;

 private:
  struct Transfer {
    std::size_t number;
    Seconds alone;  ///< what it takes when nothing else happens
  };
  struct Lane {
    const Link* link;
    std::size_t opposite;  ///< its own number if there is none
    std::deque<Transfer> queue = {};
    Seconds left{0};  ///< of the first in the queue, at full speed
    double speed = 1;
    Bytes moved = {};
    bool busy() const { return !queue.empty(); }
  };

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

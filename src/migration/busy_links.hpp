// SPDX-License-Identifier: Apache-2.0
// How long the links of fast memory are busy, by an estimate that writers of plans keep: transfers of a lane
// go one after the other, and kernels beside them are slower.
#pragma once

#include <deque>
#include <vector>

#include "terrace/machine.hpp"

namespace terrace::migration {

class BusyLinks {
 public:
  /// Borrows the machine.
  explicit BusyLinks(const Machine& machine) : machine_(machine), lanes_(2 * machine.tiers.size()) {}

  /// Returns when all that was started before is done.
  Seconds free_at(TierId from, TierId to) const { return lanes_[lane(from, to)].free_at; }
  /// Returns when a transfer would be done that is started now.
  Seconds end_of(TierId from, TierId to, Bytes size, Seconds now) const;
  /// Starts a transfer. Returns when it is done.
  Seconds start(TierId from, TierId to, Bytes size, Seconds now);
  /// Returns when a kernel is done that starts now and takes so long alone. pre: `now` never goes back
  Seconds end_of_kernel(Seconds alone, Seconds now);

 private:
  struct Transfer {
    Seconds end;
    double loss;  ///< the share of the kernels' speed that it takes
  };
  /// A link, or both of a pair that cannot work at once.
  struct Lane {
    Seconds free_at{0};
    std::deque<Transfer> transfers = {};  ///< without a pause between them
  };
  std::size_t lane(TierId from, TierId to) const;

  const Machine& machine_;
  std::vector<Lane> lanes_;  ///< two of each tier: out and in
};

/// The same estimate backwards in time: each transfer has to be done by some moment and starts as late as the
/// links allow.
class LatestStarts {
 public:
  /// Nothing is transferred after `end`. Borrows the machine.
  LatestStarts(const Machine& machine, Seconds end) : links_(machine), end_(end) {}

  /// Plans a transfer that is done by `needed` and before those planned earlier. Returns when it starts,
  /// which is below zero where there is not enough time.
  Seconds start(TierId from, TierId to, Bytes size, Seconds needed) {
    return end_ - links_.start(from, to, size, end_ - needed);
  }

 private:
  BusyLinks links_;  ///< its time runs from the end towards the start
  Seconds end_;
};

}  // namespace terrace::migration

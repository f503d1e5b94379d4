// SPDX-License-Identifier: Apache-2.0
// How fast the real mover carries bytes between opened tiers: alone, against the opposite direction, and
// beside kernels. Each call is one short round. One at a time; uses OpenMP's team.
#pragma once

#include <vector>

#include "terrace/mover.hpp"

namespace terrace {

/// The numbers of copying threads that are worth measuring between two memories, in ascending order. There
/// are none where one of the tiers is not memory.
std::vector<unsigned> thread_counts(Tier& from, Tier& to);

class LinkBench {
 public:
  /// Uses the first `area` bytes of every tier; fills them all, so that no disk writes into fresh space
  /// later. Borrows the tiers. pre: the first tier is addressable
  LinkBench(std::vector<Tier*> tiers, Bytes area);

  /// Returns how long one transfer of `size` takes, from many in a row that last for at least `round`.
  Seconds transfer(TierId from, TierId to, Bytes size, Seconds round);
  /// The rate of the link while the opposite one is busy too, over its rate alone.
  double both_ways(TierId from, TierId to, Bytes size, Seconds round);
  /// A kernel on all threads and a busy link slow each other down: what is left of the speed that each has
  /// alone. The kernel uses memory moderately, with 16 operations for every byte.
  struct Shares {
    double compute = 1, link = 1;
  };
  Shares beside_compute(TierId from, TierId to, Bytes size, Seconds round);
  /// Returns how many threads copy over a link.
  unsigned threads(TierId from, TierId to) const;

  struct Copying {
    BytesPerSecond rate;  ///< alone
    Shares beside;
  };
  /// The same with so many copying threads, in the background. pre: both tiers are memory
  Copying with_threads(unsigned threads, TierId from, TierId to, Bytes size, Seconds round);

 private:
  void fill(Bytes area);
  Copying beside_compute(Mover& mover, TierId from, TierId to, Bytes size, Seconds round);

  std::vector<Tier*> tiers_;
  Bytes half_;  ///< half of the area, for one direction
  std::vector<float> operand_;
  Mover mover_;  ///< last: transfers end before anything else does
};

}  // namespace terrace

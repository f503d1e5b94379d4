// SPDX-License-Identifier: Apache-2.0
// What the processor and its memory can do at best, measured here and now: the two lines of a roofline.
//
// Arithmetic: every thread keeps independent chains of fused multiply-adds in vector registers, which touches
// no memory at all. Memory: all threads compute a = b + s c over arrays far larger than the caches, counted
// as three transfers per element. Each is the best of several short rounds. Uses OpenMP's team; one at a
// time.
#pragma once

#include "terrace/bytes.hpp"

namespace terrace {

struct Rates {
  double flops_per_second = 0;
  BytesPerSecond bandwidth;

  /// No kernel that does this work on bytes that are not yet in a cache is faster.
  Seconds bound(double flops, Bytes bytes) const;
};

/// Takes about a second. Fails where there is no memory for it. pre: threads > 0
Result<Rates> measure_rates(unsigned threads);

}  // namespace terrace

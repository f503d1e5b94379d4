// SPDX-License-Identifier: Apache-2.0
// What calibration measured, and how a machine follows from it: medians, shares, names. Plain data, no clock.
#pragma once

#include <string>
#include <vector>

#include "base/median.hpp"
#include "terrace/machine.hpp"

namespace terrace {

/// Values of one figure, one from each of several short rounds.
using Samples = std::vector<double>;

/// A sample that at most a quarter of the samples is below: how long something takes when nothing else
/// happens. pre: there are samples
double lower_quartile(Samples samples);

struct TierSamples {
  TierSpec spec;  ///< as asked for, not the small part that was measured
  Bytes granularity{64};
  bool addressable = true;
  Samples read, write;  ///< bytes per second in place; none where it is not addressable
  Samples latency;      ///< seconds
};

struct SizedSamples {
  Bytes size;
  Samples seconds;  ///< of one transfer alone
};

/// A link with one number of copying threads.
struct ThreadedSamples {
  unsigned threads = 1;
  Samples rate;                      ///< bytes per second, alone
  Samples compute, while_computing;  ///< as LinkSamples has them
};

struct LinkSamples {
  TierId from, to;
  std::vector<SizedSamples> times;  ///< sizes ascend
  Samples both_ways;                ///< rate while the opposite link is busy over the rate alone
  Samples compute;                  ///< speed of kernels while the link is busy over their speed alone
  Samples while_computing;          ///< rate while kernels run over the rate alone
  unsigned threads = 1;
  std::vector<ThreadedSamples> by_threads = {};
};

struct Measurements {
  std::string source;
  Compute compute;
  std::vector<TierSamples> tiers;  ///< the first is `dram`, or on a device
  std::vector<LinkSamples> links;
};

/// Named `this`. Noise is kept from making nonsense: a larger transfer never takes less time, a share stays a
/// share. A tier that is not addressable has the rates of its links with the first tier. Where there is one
/// with blocks, regions of the first tier are whole pages, so that no copy needs to be bounced.
/// pre: samples of everything; a link from the first tier to each other that is not addressable, and back
Machine assemble(const Measurements& measured);

}  // namespace terrace

// Calibration: measures this computer as a machine, in less than a minute.
//
// Opens memory and a small part of every slow tier asked for, measures each of them and the links between any
// two of them with the real mover, and gives everything back. It stands here and not in machine/ because it
// uses tiers, the mover and kernels. It uses OpenMP's team, so only one may run at a time.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "terrace/machine.hpp"

namespace terrace {

struct CalibrateOptions {
  std::vector<TierSpec> slow;  ///< the tiers beside `dram`, the fastest first
  unsigned threads = 0;        ///< how many compute; 0: as many as this process can keep busy
  /// How much of every tier is used for measuring: far more than a cache holds.
  Bytes area{256U << 20U};
  /// The sizes of transfers that are measured, in ascending order; none is above half the area.
  std::vector<Bytes> sizes{{4U << 10U}, {64U << 10U}, {256U << 10U}, {1U << 20U}, {4U << 20U}, {16U << 20U}};
  unsigned rounds = 5;  ///< how often everything is measured; the median counts
  Seconds round{0.05};  ///< a round of a link takes at least so long
  /// Called with what is measured now and which share of the work is done, on the calling thread.
  std::function<void(std::string_view what, double share)> progress = [](std::string_view, double) {};
};

/// The machine is named `this` and valid. Its source has the date, and says if others kept the processor busy
/// meanwhile; tier 0 is `dram` with what memory this process may use now, and specs are filled in. A file is
/// measured in a nameless file beside it, which is never the file itself. Fails where a tier cannot be opened
/// or there is no memory; throws EnvironmentError where a disk fails. pre: rounds > 0; sizes as said
Result<Machine> calibrate(const CalibrateOptions& options);

/// A tier with most of the memory that this process may use now.
TierSpec dram_spec();

}  // namespace terrace

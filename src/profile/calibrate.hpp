// Calibration: measures this computer as a machine, in less than a minute.
//
// Opens memory and a small part of every slow tier asked for, measures each of them and the links between any
// two of them with the real mover, and gives everything back. Stands here and not in machine/ because it uses
// tiers, the mover and kernels. Uses OpenMP's team; one at a time.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "terrace/machine.hpp"

namespace terrace {

struct CalibrateOptions {
  std::vector<TierSpec> slow;  ///< beside `dram`, the fastest first
  unsigned threads = 0;        ///< that compute; 0: as many as this process can keep busy
  /// Of every tier, what is used. Far more than a cache holds.
  Bytes area{256U << 20U};
  /// Of transfers; ascending, none above half the area.
  std::vector<Bytes> sizes{{4U << 10U}, {64U << 10U}, {256U << 10U}, {1U << 20U}, {4U << 20U}, {16U << 20U}};
  unsigned rounds = 5;  ///< of everything; medians count
  Seconds round{0.05};  ///< the least that a round of a link takes
  /// Told what happens and which share is done, from the calling thread.
  std::function<void(std::string_view what, double share)> progress = [](std::string_view, double) {};
};

/// Named `this`, valid, dated in its source, which also says if others kept the processor busy meanwhile;
/// tier 0 is `dram` with what memory this process may use now, and specs are filled in. A file is measured in
/// a nameless file beside it, which is never the file itself. Fails where a tier cannot be opened or there is
/// no memory; throws EnvironmentError where a disk fails. pre: rounds > 0; sizes as said
Result<Machine> calibrate(const CalibrateOptions& options);

/// Most of the memory this process may use now.
TierSpec dram_spec();

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// A ScanWindow says how long a scan waits for its samples to be referenced.
//
// A sample tells only whether it was referenced at all. The longer a scan waits, the more of what is hardly
// in use looks as hot as the rest. Fast memory holds a share of all memory, so a scan that finds more in use
// than three quarters of that share cannot tell what is worth keeping, and the next one waits half as long;
// where it finds little, the next one waits twice as long. It is plain data without a clock; one thread uses
// it.
#pragma once

#include <algorithm>
#include <cstddef>

namespace terrace::pages {

class ScanWindow {
 public:
  explicit ScanWindow(double longest_seconds) : longest_(longest_seconds), seconds_(longest_seconds) {}

  double seconds() const { return seconds_; }

  /// A scan has asked so many samples and found so many of them in use.
  void scanned(std::size_t asked, std::size_t in_use, double fast_share) {
    if (asked < kFewest) return;
    const double share = static_cast<double>(in_use) / static_cast<double>(asked);
    const double most = std::min(fast_share, 1.0) * 3 / 4;
    if (share > most) seconds_ = std::max(seconds_ / 2, longest_ / kDivisions);
    if (share < most / 4) seconds_ = std::min(seconds_ * 2, longest_);
  }

 private:
  static constexpr std::size_t kFewest = 16;  // fewer samples say nothing about a share
  static constexpr double kDivisions = 4;

  double longest_, seconds_;
};

}  // namespace terrace::pages

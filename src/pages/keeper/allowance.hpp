// SPDX-License-Identifier: Apache-2.0
// An Allowance keeps profiling within its share of the time (002 eq. 8.1) whatever a sample costs.
//
// Eq. 8.1 divides what an interval may spend by the price of one sample in one scan. The price is learned: it
// rises at once to what a scan has cost, and falls slowly, because too many samples cannot be taken back.
// What one scan spent too much the next ones lack, also those of the next interval. It is plain data without
// a clock; one thread uses it.
#pragma once

#include <algorithm>
#include <cstddef>

#include "pages/keeper/stretches.hpp"

namespace terrace::pages {

class Allowance {
 public:
  explicit Allowance(const ProfilingOptions& options)
      : options_(options), seconds_(options.interval_seconds * options.overhead * kUsed) {}

  void begin_interval() {
    debt_ = std::max(debt_ + spent_ - seconds_, 0.0);
    spent_ = 0;
    scans_left_ = options_.scans;
  }
  /// Samples that each scan of an interval may have (eq. 8.1).
  std::size_t samples_of_interval() const { return affordable_samples(options_); }
  /// Samples that the next scan may have, after what was spent so far.
  std::size_t samples_of_scan() const {
    return static_cast<std::size_t>(seconds_of_scan() / options_.seconds_of_a_scan);
  }
  /// Returns whether a scan that has cost this much while its samples are taken may take another one: giving
  /// them back costs as much again.
  bool may_go_on(double seconds) const { return 2 * seconds < seconds_of_scan(); }

  /// Something of the interval that is no scan cost this much.
  void spend(double seconds) { spent_ += seconds; }
  /// A scan with so many samples has ended.
  void scanned(std::size_t samples, double seconds) {
    spent_ += seconds;
    if (scans_left_ > 1) --scans_left_;
    if (samples == 0) return;
    const double each = seconds / static_cast<double>(samples);
    double& price = options_.seconds_of_a_scan;
    price = std::max(each, kRemembered * price + (1 - kRemembered) * each);
  }

  /// The share of the interval that profiling has taken.
  double share() const { return spent_ / options_.interval_seconds; }

 private:
  static constexpr double kUsed = 0.8;  // the rest is for prices that rise within a scan
  static constexpr double kRemembered = 0.75;

  double seconds_of_scan() const { return std::max(seconds_ - debt_ - spent_, 0.0) / scans_left_; }

  ProfilingOptions options_;
  double seconds_;  // that an interval may spend
  double spent_ = 0, debt_ = 0;
  unsigned scans_left_ = options_.scans;
};

}  // namespace terrace::pages

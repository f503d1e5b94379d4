// SPDX-License-Identifier: Apache-2.0
// Repeated measurements of one time, and when there are enough of them.
#pragma once

#include <cstddef>
#include <vector>

#include "terrace/bytes.hpp"

namespace terrace {

/// When a time was measured often enough: at the latest after `most` samples, or when they took `longest`.
struct Effort {
  std::size_t most = 15;
  double narrow = 0.05;  ///< half of the confidence interval over the median: below it no more are needed
  Seconds longest{0.3};
};

class TimeSamples {
 public:
  void add(Seconds time) { times_.push_back(time); }
  std::size_t count() const { return times_.size(); }

  /// Returns what to take the time to be: a disturbed sample among good ones does not move it. pre: count() >
  /// 0
  Seconds median() const;
  /// Half of the 95% confidence interval of the mean, by Student's distribution; infinite below two samples.
  Seconds half_width() const;
  /// Returns whether the interval is narrow against the median, or as many were taken as are worth it, or as
  /// much time was spent; never before there are a few.
  bool are_enough(Seconds spent, const Effort& effort = {}) const;

 private:
  std::vector<Seconds> times_;
};

}  // namespace terrace

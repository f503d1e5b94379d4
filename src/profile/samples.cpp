// SPDX-License-Identifier: Apache-2.0
#include "profile/samples.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/median.hpp"

namespace terrace {
namespace {

constexpr std::size_t kLeast = 3;

/// The 97.5% point of Student's distribution with 1, 2, ... degrees of freedom.
constexpr std::array kStudent{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                              2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145};
static_assert(kStudent.size() == Effort{}.most - 1);

}  // namespace

Seconds TimeSamples::median() const { return terrace::median(times_); }

Seconds TimeSamples::half_width() const {
  if (times_.size() < 2) return Seconds{std::numeric_limits<double>::infinity()};
  const auto n = static_cast<double>(times_.size());
  const double mean = std::accumulate(times_.begin(), times_.end(), Seconds{0}).count() / n;
  double squares = 0;
  for (const Seconds time : times_) squares += (time.count() - mean) * (time.count() - mean);
  const double student = kStudent[std::min(times_.size() - 2, kStudent.size() - 1)];
  return Seconds{student * std::sqrt(squares / (n - 1) / n)};
}

bool TimeSamples::are_enough(Seconds spent, const Effort& effort) const {
  if (count() < kLeast) return false;
  return count() >= effort.most || spent >= effort.longest || half_width() <= effort.narrow * median();
}

}  // namespace terrace

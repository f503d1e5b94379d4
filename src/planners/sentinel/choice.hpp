// Chooses migration intervals from the profile, without running a step.
#pragma once

#include "planners/sentinel/scheduler.hpp"

namespace terrace::sentinel {

struct Choice {
  Cuts cuts;
  std::uint32_t layers = 0;  ///< of an interval; 0: not even one layer fits
};

/// Intervals of equal length: of those whose tensors fit beside the reserve (002 eq. 4.1), the one with the
/// least predicted loss (eq. 4.2), the shortest of equals. Lengths grow until they do not fit; long ones are
/// looked at ever farther apart. In a large graph lengths double, until that makes it worse.
Choice choose_equal(const StepView& view, const Units& units, Bytes capacity, const ScheduleRules& rules);

/// Intervals of any length up to some layers, for the transfers of these equal ones: the least time in which
/// the transfers for an interval outlast the interval before it.
Cuts choose_unequal(const StepView& view, const Units& units, const Cuts& equal, Bytes capacity,
                    const ScheduleRules& rules);

}  // namespace terrace::sentinel

// SPDX-License-Identifier: Apache-2.0
// Migration intervals: a step cut into runs of layers (002 section 4.4.4), and when each unit is used in
// them.
//
//   visit     a unit's uses within one interval, from the first kernel to the last
//   idle span   the kernels between two visits of a unit
//   reserve   what short-lived tensors take (RS in 002 eq. 4.1)
#pragma once

#include <cstdint>
#include <vector>

#include "migration/units.hpp"

namespace terrace::migration {

/// The first kernel of each interval, ascending from 0. The step's end is an interval of its own.
using Cuts = std::vector<std::uint32_t>;

/// Returns intervals of so many layers each; the last may have fewer. pre: layers > 0
Cuts equal_cuts(const StepView& view, std::uint32_t layers);
/// Returns intervals of one kernel each, for budgets in which not even one layer fits.
Cuts kernel_cuts(const StepView& view);

struct Visit {
  std::uint32_t unit, interval;
  std::uint32_t first, last;                       ///< kernels
  std::uint32_t touches = 0, touches_end = 0;      ///< of the unit
  std::uint32_t previous = kNever, next = kNever;  ///< visits of the same unit
  bool writes = false;
};

struct Visits {
  std::vector<Visit> all;                  ///< by their first kernel
  std::vector<std::uint32_t> interval_of;  ///< by kernel, the step's end last
  std::vector<std::uint32_t> first;        ///< by unit: its first visit, or kNever
  std::vector<std::uint32_t> begin;        ///< by interval: its first visit; one more for the end
  std::uint32_t intervals() const { return static_cast<std::uint32_t>(begin.size() - 1); }
};

Visits make_visits(const StepView& view, const Units& units, const Cuts& cuts);

/// Returns, by interval, the most bytes that short-lived tensors take at once.
std::vector<Bytes> reserves(const StepView& view, const Units& units, const Cuts& cuts);

/// Returns the least fast memory that Sentinel wants: what short-lived tensors take at most, and the largest
/// long-lived tensor (002 section 4.4.5).
Bytes least_fast_memory(const StepView& view, const Units& units);

}  // namespace terrace::migration

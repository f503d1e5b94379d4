// SPDX-License-Identifier: Apache-2.0
// What a planner decided: for every visit whether the unit is in fast memory or used in its backing tier, and
// for every idle span whether it stays in fast memory or leaves. The order of transfers and waiting are for
// the writer.
#pragma once

#include <vector>

#include "migration/intervals.hpp"
#include "migration/occupancy.hpp"

namespace terrace::migration {

struct Schedule {
  Schedule(const StepView& view, const Visits& visits, const Units& units);

  std::vector<bool> in_place;  ///< by visit
  std::vector<bool> stays;     ///< by visit: in fast memory until the next one
  /// By unit: in fast memory when the step starts, until its first visit. A persistent one is there always,
  /// unless it returns.
  std::vector<bool> from_start;
  /// By unit: a persistent one of one tensor that is in fast memory when the step starts and after its last
  /// visit, and leaves in between.
  std::vector<bool> returns;
  PlannedOccupancy planned;   ///< bytes of fast memory in use, if transfers took no time
  std::vector<Seconds> slow;  ///< by kernel: the time that its operands in slower tiers take
  bool fits = true;           ///< else some kernels' operands exceed the capacity
};

/// Returns whether the unit is in fast memory for the whole step.
bool is_pinned(const Units& units, const Schedule& schedule, std::uint32_t unit);
/// Returns whether what the unit holds comes from its backing tier for this visit.
bool is_fetched(const Units& units, const Visits& visits, const Schedule& schedule, std::uint32_t visit);
/// Returns what using the unit in its backing tier during a visit adds to the kernels' time.
Seconds slowdown(const StepView& view, const Units& units, const Visit& visit,
                 const std::vector<Seconds>& slow);
/// Books the room that a unit takes in fast memory by what was decided about it, and the time of kernels that
/// use it in slower memory.
void book(const StepView& view, const Units& units, const Visits& visits, std::uint32_t unit,
          Schedule& schedule);

}  // namespace terrace::migration

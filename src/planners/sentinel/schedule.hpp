// Decides for every visit whether the unit is in fast memory or used in its slower home, and for every gap
// whether it stays in fast memory or leaves.
//
// Room goes to short-lived tensors, then to visits, those that would lose most in slow memory first, then to
// gaps, the shortest first: they save as many transfers for less room. What leaves, and loses less in slow
// memory than its transfers cost, is used there. The order of transfers and waiting are for the writer.
#pragma once

#include <vector>

#include "planners/occupancy.hpp"
#include "planners/sentinel/intervals.hpp"

namespace terrace::sentinel {

struct ScheduleRules {
  bool reserve = true;
  bool in_place = true;
  /// What a second of a link costs, in seconds of the step: between what copying takes from kernels and 1,
  /// where every transfer is waited for.
  double link_price = 0;
};

struct Schedule {
  Schedule(const StepView& view, const Visits& visits, const Units& units);

  std::vector<bool> in_place;    ///< by visit
  std::vector<bool> stays;       ///< by visit: in fast memory until the next one
  std::vector<bool> from_start;  ///< by unit: in fast memory when the step starts; a persistent one always
  PlannedOccupancy planned;      ///< of fast memory, with transfers that take no time
  std::vector<Seconds> slow;     ///< by kernel: what its operands in slower tiers take
  bool fits = true;              ///< else some kernels' operands exceed the capacity
};

/// Whether what the unit holds comes from its home for this visit.
bool is_fetched(const Units& units, const Visits& visits, const Schedule& schedule, std::uint32_t visit);
/// What using the unit in its home during a visit adds to the kernels' time.
Seconds slowdown(const StepView& view, const Units& units, const Visit& visit,
                 const std::vector<Seconds>& slow);

Schedule make_schedule(const StepView& view, const Units& units, const Visits& visits, Bytes capacity,
                       const ScheduleRules& rules);

/// How much longer the step gets than with all in fast memory: by waiting for fetches, each started when the
/// interval before its own begins (002 eq. 4.2, with what is really moved instead of all of fast memory), by
/// kernels that share the machine with copies, and by those that use slower memory.
Seconds predicted_loss(const StepView& view, const Units& units, const Visits& visits,
                       const Schedule& schedule);

}  // namespace terrace::sentinel

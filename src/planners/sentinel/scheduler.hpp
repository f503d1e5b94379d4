// SPDX-License-Identifier: Apache-2.0
// Decides for every visit whether the unit is in fast memory or used in its backing tier, and for every idle
// span whether it stays in fast memory or leaves.
//
// Room goes to short-lived tensors, then to visits, those that would lose most in slow memory first, then to
// idle spans, the shortest first: they save as many transfers for less room. What leaves, and loses less in
// slow memory than its transfers cost, is used there.
#pragma once

#include "migration/schedule.hpp"

namespace terrace::sentinel {

using migration::Cuts;
using migration::Grouping;
using migration::Schedule;
using migration::ShortLived;
using migration::StepView;
using migration::Touch;
using migration::Unit;
using migration::Units;
using migration::Visit;
using migration::Visits;

struct ScheduleRules {
  bool reserve = true;
  bool in_place = true;
  /// What a second of a link costs, in seconds of the step: between what copying takes from kernels and 1,
  /// where every transfer is waited for.
  double link_price = 0;
  bool evict_after_use = false;  ///< nothing is kept between two visits
};

Schedule make_schedule(const StepView& view, const Units& units, const Visits& visits, Bytes capacity,
                       const ScheduleRules& rules);

/// Returns how much longer the step gets than with all in fast memory: by waiting for fetches, each started
/// when the interval before its own begins (002 eq. 4.2, with what is really moved instead of all of fast
/// memory), by kernels that share the machine with copies, and by those that use slower memory.
Seconds predicted_loss(const StepView& view, const Units& units, const Visits& visits,
                       const Schedule& schedule);

}  // namespace terrace::sentinel

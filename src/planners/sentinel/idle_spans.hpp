// SPDX-License-Identifier: Apache-2.0
// Idle spans between visits, and the room that keeping or moving a unit over them takes.
#pragma once

#include <vector>

#include "planners/sentinel/scheduler.hpp"

namespace terrace::sentinel {

/// Kernels first..last, both included; empty where first > last.
struct Stretch {
  std::uint32_t first, last;
};

/// The kernels after a visit; or, where it names none, from the step's start: of a persistent unit all spans
/// at once, which pins it, of a given one the time until its first visit.
struct IdleSpan {
  std::uint32_t unit;
  std::uint32_t visit = kNever;
};

/// Returns idle spans, first those in which a saved transfer takes room for the shortest time.
std::vector<IdleSpan> idle_spans_by_length(const StepView& view, const Units& units, const Visits& visits);

/// Returns the room that keeping the unit takes beside what is kept already; nothing where it cannot be kept
/// or is.
std::vector<Stretch> stretches(const StepView& view, const Units& units, const Visits& visits,
                               const Schedule& schedule, const IdleSpan& idle);
void mark_kept(const Units& units, const Visits& visits, Schedule& schedule, const IdleSpan& idle);
bool is_kept(const Schedule& schedule, const IdleSpan& idle);

/// A unit on its way into or out of fast memory, where it takes room all the same.
struct Transit {
  std::uint32_t unit;
  Stretch stretch;
};

/// Returns all transits: fetches as late as their links allow, but not before the interval ahead of their
/// visit's, and stores at once.
std::vector<Transit> transits(const StepView& view, const Units& units, const Visits& visits,
                              const Schedule& schedule);

}  // namespace terrace::sentinel

// Gaps between visits, and the room that keeping or moving a unit over them takes.
#pragma once

#include <vector>

#include "planners/sentinel/scheduler.hpp"

namespace terrace::sentinel {

/// Kernels first..last, both included; empty where first > last.
struct Stretch {
  std::uint32_t first, last;
};

/// After a visit; or, where it names none, from the step's start: of a persistent unit all gaps at once,
/// which pins it, of a given one the time until its first visit.
struct IdleSpan {
  std::uint32_t unit;
  std::uint32_t visit = kNever;
};

/// The shortest first, by the time that one saved transfer takes room.
std::vector<IdleSpan> idle_spans_by_length(const StepView& view, const Units& units, const Visits& visits);

/// The room that keeping the gap takes beside what is kept already. Empty where it cannot be kept or is.
std::vector<Stretch> stretches(const StepView& view, const Units& units, const Visits& visits,
                               const Schedule& schedule, const IdleSpan& idle);
void mark_kept(const Units& units, const Visits& visits, Schedule& schedule, const IdleSpan& idle);
bool is_kept(const Schedule& schedule, const IdleSpan& idle);

/// A unit on its way into or out of fast memory, where it takes room all the same.
struct Transit {
  std::uint32_t unit;
  Stretch stretch;
};

/// Every fetch as late as its link allows, but not before the interval ahead of its visit's; every store at
/// once.
std::vector<Transit> transits(const StepView& view, const Units& units, const Visits& visits,
                              const Schedule& schedule);

}  // namespace terrace::sentinel

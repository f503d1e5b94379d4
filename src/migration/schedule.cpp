// SPDX-License-Identifier: Apache-2.0
#include "migration/schedule.hpp"

#include <algorithm>

namespace terrace::migration {

Schedule::Schedule(const StepView& view, const Visits& visits, const Units& units)
    : in_place(visits.all.size()),
      stays(visits.all.size()),
      from_start(units.all.size()),
      returns(units.all.size()),
      planned(view.kernels() + 1),
      slow(view.kernels() + 1) {}

bool is_pinned(const Units& units, const Schedule& schedule, std::uint32_t u) {
  const Unit& unit = units.all[u];
  return unit.fixed || (unit.persistent && schedule.from_start[u] && !schedule.returns[u]);
}

bool is_fetched(const Units& units, const Visits& visits, const Schedule& schedule, std::uint32_t visit) {
  const Visit& what = visits.all[visit];
  if (what.previous != kNever) return !schedule.stays[what.previous];
  const Unit& unit = units.all[what.unit];
  return (unit.persistent || unit.given) && !schedule.from_start[what.unit];
}

Seconds slowdown(const StepView& view, const Units& units, const Visit& visit,
                 const std::vector<Seconds>& slow) {
  Seconds lost{0};
  for (std::uint32_t i = visit.touches; i < visit.touches_end; ++i) {
    const Touch& touch = units.all[visit.unit].touches[i];
    if (touch.kernel == view.kernels()) continue;
    const Seconds now = std::max(view.clock.fast({touch.kernel}), slow[touch.kernel]);
    lost += std::max(now, slow[touch.kernel] + touch.slow) - now;
  }
  return lost;
}

void book(const StepView& view, const Units& units, const Visits& visits, std::uint32_t u,
          Schedule& schedule) {
  const Unit& unit = units.all[u];
  const auto size = static_cast<std::int64_t>(unit.size.count);
  const std::uint32_t end = view.kernels();
  const std::uint32_t first = visits.first[u];
  if (schedule.from_start[u] && is_pinned(units, schedule, u)) return schedule.planned.add(0, end, size);
  if (unit.given && (schedule.from_start[u] || !unit.in_place)) schedule.planned.add(end, end, size);
  const bool waits = (unit.given || schedule.returns[u]) && schedule.from_start[u];
  if (waits && first != kNever && visits.all[first].first > 0)
    schedule.planned.add(0, visits.all[first].first - 1, size);
  for (std::uint32_t v = first; v != kNever; v = visits.all[v].next) {
    const Visit& visit = visits.all[v];
    if (schedule.in_place[v]) {
      for (std::uint32_t i = visit.touches; i < visit.touches_end; ++i)
        schedule.slow[unit.touches[i].kernel] += unit.touches[i].slow;
      continue;
    }
    const bool remains = schedule.returns[u] && visit.next == kNever;
    const std::uint32_t until = remains             ? end
                                : schedule.stays[v] ? visits.all[visit.next].first - 1
                                                    : visit.last;
    schedule.planned.add(visit.first, until, size);
  }
}

}  // namespace terrace::migration

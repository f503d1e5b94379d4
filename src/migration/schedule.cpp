#include "migration/schedule.hpp"

#include <algorithm>

namespace terrace::migration {

Schedule::Schedule(const StepView& view, const Visits& visits, const Units& units)
    : in_place(visits.all.size()),
      stays(visits.all.size()),
      from_start(units.all.size()),
      planned(view.kernels() + 1),
      slow(view.kernels() + 1) {}

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

}  // namespace terrace::migration

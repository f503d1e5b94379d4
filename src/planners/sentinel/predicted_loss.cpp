// SPDX-License-Identifier: Apache-2.0
// Predicts what a schedule costs, from the profile alone.
#include <algorithm>

#include "migration/busy_links.hpp"
#include "migration/link_use.hpp"
#include "planners/sentinel/scheduler.hpp"

namespace terrace::sentinel {
namespace {

/// Returns how much longer the step gets by waiting for fetches.
Seconds exposed(const StepView& view, const Units& units, const Visits& visits, const Schedule& schedule) {
  std::vector<Seconds> begins(visits.intervals(), view.begin.back());
  for (std::uint32_t k = view.kernels(); k-- > 0;) begins[visits.interval_of[k]] = view.begin[k];
  migration::BusyLinks links(view.request.machine);
  Seconds late{0};
  for (std::uint32_t i = 0; i < visits.intervals(); ++i) {
    const Seconds from = (i > 0 ? begins[i - 1] : Seconds{0}) + late;
    Seconds arrived = from;
    for (std::uint32_t v = visits.begin[i]; v < visits.begin[i + 1]; ++v) {
      const Unit& unit = units.all[visits.all[v].unit];
      if (schedule.in_place[v] || !unit.backing_tier || !is_fetched(units, visits, schedule, v)) continue;
      arrived = std::max(arrived, links.start(*unit.backing_tier, {0}, unit.size, from));
    }
    late += std::max(Seconds{0}, arrived - (begins[i] + late));
  }
  return late;
}

/// Returns how much longer kernels take because copies run beside them.
Seconds slowed_by_copies(const StepView& view, const Units& units, const Visits& visits,
                         const Schedule& schedule) {
  const Machine& machine = view.request.machine;
  Seconds lost{0};
  for (std::uint32_t v = 0; v < visits.all.size(); ++v) {
    const Unit& unit = units.all[visits.all[v].unit];
    if (schedule.in_place[v] || !unit.backing_tier || !is_fetched(units, visits, schedule, v)) continue;
    const Link &in = *machine.link(*unit.backing_tier, {0}), &out = *machine.link({0}, *unit.backing_tier);
    lost += lost_to_transfer(in, unit.size);
    if (visits.all[v].previous != kNever) lost += lost_to_transfer(out, unit.size);
  }
  return lost;
}

}  // namespace

Seconds predicted_loss(const StepView& view, const Units& units, const Visits& visits,
                       const Schedule& schedule) {
  Seconds lost = exposed(view, units, visits, schedule) + slowed_by_copies(view, units, visits, schedule);
  for (std::uint32_t k = 0; k < view.kernels(); ++k) {
    lost += std::max(Seconds{0}, schedule.slow[k] - view.clock.fast({k}));
  }
  return lost;
}

}  // namespace terrace::sentinel

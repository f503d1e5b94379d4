// SPDX-License-Identifier: Apache-2.0
#include "planners/sentinel/idle_spans.hpp"

#include <algorithm>

#include "migration/busy_links.hpp"

namespace terrace::sentinel {
namespace {

class IdleSpanList {
 public:
  IdleSpanList(const StepView& view, const Units& units, const Visits& visits)
      : view_(view), units_(units), visits_(visits) {}

  std::vector<IdleSpan> run() {
    for (std::uint32_t u = 0; u < units_.all.size(); ++u) add(u);
    std::stable_sort(idle_spans_.begin(), idle_spans_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<IdleSpan> sorted;
    for (const auto& [length, idle] : idle_spans_) sorted.push_back(idle);
    return sorted;
  }

 private:
  void add(std::uint32_t u) {
    const Unit& unit = units_.all[u];
    if (unit.fixed || unit.short_lived) return;
    Seconds all{0};
    double count = 1;
    for (std::uint32_t v = visits_.first[u]; v != kNever; v = visits_.all[v].next, ++count) {
      const std::uint32_t next = visits_.all[v].next;
      if (next == kNever) break;
      const Seconds length = view_.begin[visits_.all[next].first] - view_.begin[visits_.all[v].last + 1];
      all += length;
      idle_spans_.emplace_back(length, IdleSpan{u, v});
    }
    const std::uint32_t first = visits_.first[u];
    if (unit.persistent) {
      // A persistent unit is also idle around the end of the step.
      Seconds out = view_.begin.back();
      if (first != kNever) out = pinned_length(u, all) / count;
      idle_spans_.emplace_back(out, IdleSpan{u, kNever});
    } else if (unit.given) {
      const Seconds length = first == kNever ? view_.begin.back() : view_.begin[visits_.all[first].first];
      idle_spans_.emplace_back(length, IdleSpan{u, kNever});
    }
  }

  Seconds pinned_length(std::uint32_t u, Seconds between) const {
    std::uint32_t last = visits_.first[u];
    while (visits_.all[last].next != kNever) last = visits_.all[last].next;
    const std::uint32_t after = std::min(visits_.all[last].last + 1, view_.kernels());
    return between + view_.begin[visits_.all[visits_.first[u]].first] + view_.begin.back() -
           view_.begin[after];
  }

  const StepView& view_;
  const Units& units_;
  const Visits& visits_;
  std::vector<std::pair<Seconds, IdleSpan>> idle_spans_;
};

/// Returns the time that a given unit takes room: until its first visit, after which it is not needed until
/// the end.
std::vector<Stretch> given_stretches(const StepView& view, const Unit& unit, std::uint32_t first_kernel) {
  std::vector<Stretch> room;
  const std::uint32_t end = view.kernels();
  // A unit that nobody uses is there all the time.
  if (first_kernel == kNever) return {{0, unit.in_place ? end : end - 1}};
  if (first_kernel > 0) room.push_back({0, first_kernel - 1});
  if (unit.in_place) room.push_back({end, end});
  if (room.empty()) room.push_back({1, 0});
  return room;
}

/// Returns all idle spans of a persistent unit over which it is not kept yet.
std::vector<Stretch> pinned_stretches(const StepView& view, const Visits& visits, const Schedule& schedule,
                                      std::uint32_t unit) {
  std::uint32_t from = 0;
  std::vector<Stretch> room;
  for (std::uint32_t v = visits.first[unit]; v != kNever; v = visits.all[v].next) {
    if (schedule.in_place[v]) return {};
    const Visit& visit = visits.all[v];
    const bool kept = visit.previous != kNever && schedule.stays[visit.previous];
    if (!kept && visit.first > from) room.push_back({from, visit.first - 1});
    from = visit.last + 1;
  }
  room.push_back({from, view.kernels()});
  return room;
}

}  // namespace

std::vector<IdleSpan> idle_spans_by_length(const StepView& view, const Units& units, const Visits& visits) {
  return IdleSpanList(view, units, visits).run();
}

std::vector<Stretch> stretches(const StepView& view, const Units& units, const Visits& visits,
                               const Schedule& schedule, const IdleSpan& idle) {
  if (is_kept(schedule, idle)) return {};
  if (idle.visit != kNever) {
    const std::uint32_t next = visits.all[idle.visit].next;
    if (schedule.in_place[idle.visit] || schedule.in_place[next]) return {};
    return {{visits.all[idle.visit].last + 1, visits.all[next].first - 1}};
  }
  if (units.all[idle.unit].persistent) return pinned_stretches(view, visits, schedule, idle.unit);
  const std::uint32_t first = visits.first[idle.unit];
  if (first != kNever && schedule.in_place[first]) return {};
  return given_stretches(view, units.all[idle.unit], first == kNever ? kNever : visits.all[first].first);
}

void mark_kept(const Units& units, const Visits& visits, Schedule& schedule, const IdleSpan& idle) {
  if (idle.visit != kNever) {
    schedule.stays[idle.visit] = true;
    return;
  }
  schedule.from_start[idle.unit] = true;
  const Unit& unit = units.all[idle.unit];
  if (!unit.persistent && !unit.fixed) return;
  for (std::uint32_t v = visits.first[idle.unit]; v != kNever; v = visits.all[v].next) {
    if (visits.all[v].next != kNever) schedule.stays[v] = true;
  }
}

bool is_kept(const Schedule& schedule, const IdleSpan& idle) {
  return idle.visit != kNever ? schedule.stays[idle.visit] : schedule.from_start[idle.unit];
}

namespace {

class Transits {
 public:
  Transits(const StepView& view, const Units& units, const Visits& visits, const Schedule& schedule)
      : view_(view), units_(units), visits_(visits), schedule_(schedule) {
    cuts_.assign(visits.intervals(), view.kernels());
    for (std::uint32_t k = view.kernels(); k-- > 0;) cuts_[visits.interval_of[k]] = k;
  }

  std::vector<Transit> run() {
    add_fetches();
    add_stores();
    return std::move(transits_);
  }

 private:
  std::uint32_t kernel_at(Seconds time) const {
    const auto found = std::upper_bound(view_.begin.begin(), view_.begin.end(), time);
    return found == view_.begin.begin() ? 0 : static_cast<std::uint32_t>(found - view_.begin.begin() - 1);
  }

  void add_fetches() {
    migration::LatestStarts links(view_.request.machine, view_.begin.back());
    for (auto v = static_cast<std::uint32_t>(visits_.all.size()); v-- > 0;) {
      const Visit& visit = visits_.all[v];
      const Unit& unit = units_.all[visit.unit];
      if (schedule_.in_place[v] || !unit.backing_tier || !is_fetched(units_, visits_, schedule_, v)) continue;
      const Seconds starts = links.start(*unit.backing_tier, {0}, unit.size, view_.begin[visit.first]);
      std::uint32_t from = std::max(kernel_at(starts), visit.interval > 0 ? cuts_[visit.interval - 1] : 0);
      if (visit.previous != kNever) from = std::max(from, visits_.all[visit.previous].last + 1);
      if (from < visit.first) transits_.push_back({visit.unit, {from, visit.first - 1}});
    }
  }

  void add_stores() {
    migration::BusyLinks links(view_.request.machine);
    for (std::uint32_t v = 0; v < visits_.all.size(); ++v) {
      const Visit& visit = visits_.all[v];
      const Unit& unit = units_.all[visit.unit];
      const bool goes_on = visit.next != kNever || (unit.persistent && !schedule_.from_start[visit.unit]);
      if (schedule_.in_place[v] || schedule_.stays[v] || !goes_on || !visit.writes || !unit.backing_tier)
        continue;
      if (visit.last >= view_.kernels()) continue;
      const Seconds done = links.start({0}, *unit.backing_tier, unit.size, view_.begin[visit.last + 1]);
      const std::uint32_t until = visit.next != kNever ? visits_.all[visit.next].first : view_.kernels();
      // It is still there when the kernel begins during which it gets away.
      const std::uint32_t to = std::min(kernel_at(done), until - 1);
      if (to > visit.last) transits_.push_back({visit.unit, {visit.last + 1, to}});
    }
  }

  const StepView& view_;
  const Units& units_;
  const Visits& visits_;
  const Schedule& schedule_;
  std::vector<std::uint32_t> cuts_;  ///< the first kernel of each interval
  std::vector<Transit> transits_;
};

}  // namespace

std::vector<Transit> transits(const StepView& view, const Units& units, const Visits& visits,
                              const Schedule& schedule) {
  return Transits(view, units, visits, schedule).run();
}

}  // namespace terrace::sentinel

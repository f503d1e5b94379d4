// SPDX-License-Identifier: Apache-2.0
#include "planners/sentinel/scheduler.hpp"

#include <algorithm>
#include <limits>

#include "migration/link_use.hpp"
#include "planners/sentinel/idle_spans.hpp"

namespace terrace::sentinel {
namespace {

/// How often room is made for transfers: each time may cause more of them.
constexpr int kPasses = 3;

std::int64_t size_of(const Unit& unit) { return static_cast<std::int64_t>(unit.size.count); }

class Scheduler {
 public:
  Scheduler(const StepView& view, const Units& units, const Visits& visits, Bytes capacity,
            const ScheduleRules& rules)
      : view_(view),
        units_(units),
        visits_(visits),
        capacity_(static_cast<std::int64_t>(capacity.count)),
        rules_(rules),
        idle_spans_(rules.evict_after_use ? std::vector<IdleSpan>{}
                                          : idle_spans_by_length(view, units, visits)),
        schedule_(view, visits, units) {}

  Schedule run() {
    place_fixed();
    place_visits();
    keep(idle_spans_);
    if (rules_.in_place && use_in_place()) keep(idle_spans_);
    for (int pass = 0; pass < kPasses && anything_moves(); ++pass) {
      if (!make_room_for_transfers()) break;
    }
    if (!rules_.reserve) place(late_);
    return std::move(schedule_);
  }

 private:
  std::uint32_t end() const { return view_.kernels(); }
  const Unit& unit_of(std::uint32_t visit) const { return units_.all[visits_.all[visit].unit]; }

  bool has_room(Stretch stretch, std::int64_t bytes) const {
    return stretch.first > stretch.last ||
           schedule_.planned.most(stretch.first, stretch.last) + bytes <= capacity_;
  }
  void take(Stretch stretch, std::int64_t bytes) {
    schedule_.planned.add(stretch.first, stretch.last, bytes);
  }

  void place_fixed() {
    for (std::uint32_t u = 0; u < units_.all.size(); ++u) {
      const Unit& unit = units_.all[u];
      if (unit.fixed) {
        mark_kept(units_, visits_, schedule_, {u});
        take({0, end()}, size_of(unit));
      } else if (unit.given && !unit.in_place) {
        take({end(), end()}, size_of(unit));  // it has its place again when the step ends
      }
    }
  }

  void place_visits() {
    std::vector<std::pair<double, std::uint32_t>> order;
    constexpr double kFirst = std::numeric_limits<double>::infinity();
    for (std::uint32_t v = 0; v < visits_.all.size(); ++v) {
      const Unit& unit = unit_of(v);
      const Visit& visit = visits_.all[v];
      if (unit.fixed) continue;
      if (unit.short_lived && unit.in_place && !rules_.reserve) {
        late_.push_back(v);
        continue;
      }
      const bool before_all = !unit.in_place || unit.short_lived;
      const double room = static_cast<double>(size_of(unit)) * (1 + visit.last - visit.first);
      const double loss = slowdown(view_, units_, visit, schedule_.slow).count();
      order.emplace_back(before_all ? kFirst : loss / std::max(room, 1.0), v);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::uint32_t> sorted;
    for (const auto& [loss, v] : order) sorted.push_back(v);
    place(sorted);
  }

  void place(const std::vector<std::uint32_t>& visits) {
    for (const std::uint32_t v : visits) {
      const Visit& visit = visits_.all[v];
      const Stretch stretch{visit.first, visit.last};
      const std::int64_t size = size_of(unit_of(v));
      if (has_room(stretch, size)) {
        take(stretch, size);
      } else if (unit_of(v).in_place) {
        settle_in_place(v);
      } else {
        schedule_.fits = false;
        take(stretch, size);
      }
    }
  }

  void settle_in_place(std::uint32_t v) {
    schedule_.in_place[v] = true;
    const Visit& visit = visits_.all[v];
    for (std::uint32_t i = visit.touches; i < visit.touches_end; ++i) {
      const Touch& touch = unit_of(v).touches[i];
      schedule_.slow[touch.kernel] += touch.slow;
    }
  }

  void keep(const std::vector<IdleSpan>& idle_spans) {
    for (const IdleSpan& idle : idle_spans) {
      const std::vector<Stretch> room = stretches(view_, units_, visits_, schedule_, idle);
      if (room.empty()) continue;
      const std::int64_t size = size_of(units_.all[idle.unit]);
      const bool fits = std::all_of(room.begin(), room.end(),
                                    [&](const Stretch& stretch) { return has_room(stretch, size); });
      if (!fits) continue;
      for (const Stretch& stretch : room) take(stretch, size);
      mark_kept(units_, visits_, schedule_, idle);
    }
  }

  bool anything_moves() const {
    for (std::uint32_t v = 0; v < visits_.all.size(); ++v) {
      if (!schedule_.in_place[v] && is_fetched(units_, visits_, schedule_, v)) return true;
    }
    return false;
  }

  /// Visits in a row between which the unit stays in fast memory, and the transfers before and after them.
  struct Chain {
    std::uint32_t first, last;
    Seconds saved;
  };

  std::vector<Chain> chains() const {
    std::vector<Chain> chains;
    for (std::uint32_t v = 0; v < visits_.all.size(); ++v) {
      const Visit& visit = visits_.all[v];
      const Unit& unit = unit_of(v);
      const bool begins = visit.previous == kNever || !schedule_.stays[visit.previous];
      if (!begins || schedule_.in_place[v] || !unit.in_place || unit.fixed || unit.short_lived) continue;
      if (unit.persistent && schedule_.from_start[visit.unit]) continue;
      Chain chain{v, v, Seconds{0}};
      // A unit that is given in fast memory has no copy elsewhere, so leaving it costs a transfer.
      bool writes = visit.writes || (visit.previous == kNever && schedule_.from_start[visit.unit]);
      while (schedule_.stays[chain.last]) {
        chain.last = visits_.all[chain.last].next;
        writes = writes || visits_.all[chain.last].writes;
      }
      const bool goes_on = unit.persistent || visits_.all[chain.last].next != kNever;
      const Machine& machine = view_.request.machine;
      if (is_fetched(units_, visits_, schedule_, v))
        chain.saved += time_beside_kernels(*machine.link(*unit.backing_tier, {0}), unit.size);
      if (goes_on && writes)
        chain.saved += time_beside_kernels(*machine.link({0}, *unit.backing_tier), unit.size);
      if (chain.saved > Seconds{0}) chains.push_back(chain);
    }
    std::stable_sort(chains.begin(), chains.end(),
                     [](const Chain& a, const Chain& b) { return a.saved > b.saved; });
    return chains;
  }

  /// Uses units in slow memory where that costs less than their transfers. Returns whether any was.
  bool use_in_place() {
    bool any = false;
    for (const Chain& chain : chains()) {
      Seconds lost{0};
      for (std::uint32_t v = chain.first;; v = visits_.all[v].next) {
        lost += slowdown(view_, units_, visits_.all[v], schedule_.slow);
        if (v == chain.last) break;
      }
      if (lost > price(unit_of(chain.first)) * chain.saved) continue;
      any = true;
      leave_in_place(chain);
    }
    return any;
  }

  /// Returns what a second of the unit's link costs: at least the share of the kernels' speed that copying
  /// takes.
  double price(const Unit& unit) const {
    const Link* link = view_.request.machine.link(*unit.backing_tier, {0});
    return std::max(rules_.link_price, link->compute_loss);
  }

  void leave_in_place(const Chain& chain) {
    const Visit& first = visits_.all[chain.first];
    const std::int64_t size = size_of(unit_of(chain.first));
    if (first.previous == kNever && schedule_.from_start[first.unit]) {
      schedule_.from_start[first.unit] = false;
      for (const Stretch& stretch : stretches(view_, units_, visits_, schedule_, {first.unit})) {
        take(stretch, -size);
      }
    }
    take({first.first, visits_.all[chain.last].last}, -size);
    for (std::uint32_t v = chain.first;; v = visits_.all[v].next) {
      schedule_.stays[v] = false;
      settle_in_place(v);
      if (v == chain.last) break;
    }
  }

  /// Keeps units over idle spans anew, beside what is on its way. Returns whether it kept fewer: then more
  /// moves.
  bool make_room_for_transfers() {
    std::vector<IdleSpan> kept;
    for (const IdleSpan& idle : idle_spans_) {
      if (is_kept(schedule_, idle)) kept.push_back(idle);
    }
    const Schedule before = schedule_;
    schedule_.planned = PlannedOccupancy(end() + 1);
    std::fill(schedule_.stays.begin(), schedule_.stays.end(), false);
    std::fill(schedule_.from_start.begin(), schedule_.from_start.end(), false);
    place_fixed();
    for (std::uint32_t v = 0; v < visits_.all.size(); ++v) {
      const bool late = !rules_.reserve && unit_of(v).short_lived && unit_of(v).in_place;
      if (schedule_.in_place[v] || unit_of(v).fixed || late) continue;
      take({visits_.all[v].first, visits_.all[v].last}, size_of(unit_of(v)));
    }
    std::vector<std::pair<Stretch, std::int64_t>> on_the_way;
    for (const Transit& transit : transits(view_, units_, visits_, before)) {
      const std::int64_t size = size_of(units_.all[transit.unit]);
      if (!has_room(transit.stretch, size)) continue;
      take(transit.stretch, size);
      on_the_way.emplace_back(transit.stretch, size);
    }
    keep(kept);
    // The writer books them when they really start.
    for (const auto& [stretch, size] : on_the_way) take(stretch, -size);
    return schedule_.stays != before.stays || schedule_.from_start != before.from_start;
  }

  const StepView& view_;
  const Units& units_;
  const Visits& visits_;
  std::int64_t capacity_;
  ScheduleRules rules_;
  std::vector<IdleSpan> idle_spans_;
  std::vector<std::uint32_t> late_;  ///< visits of short-lived units that have no reserve
  Schedule schedule_;
};

}  // namespace

Schedule make_schedule(const StepView& view, const Units& units, const Visits& visits, Bytes capacity,
                       const ScheduleRules& rules) {
  return Scheduler(view, units, visits, capacity, rules).run();
}

}  // namespace terrace::sentinel

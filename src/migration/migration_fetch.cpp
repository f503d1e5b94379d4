// SPDX-License-Identifier: Apache-2.0
// Which units are fetched, and when: those of the intervals to come, in order, as soon as there is room; what
// would come too late may stay in slow memory.
#include <algorithm>

#include "migration/migration_writer.hpp"

namespace terrace::migration {
namespace {

/// How many fetches are looked at for one that can be started now.
constexpr std::size_t kLookahead = 64;

}  // namespace

/// Asks for what the next intervals need, and at the step's start for what the first does.
void MigrationWriter::begin_interval(std::uint32_t interval) {
  judge(interval);
  const std::uint32_t left = visits_.intervals() - interval;
  for (const std::uint32_t end = interval + std::min(left, ahead_ + 1); asked_ < end; ++asked_) {
    const std::uint32_t next = asked_;
    std::vector<std::uint32_t> fetches;
    for (std::uint32_t v = visits_.begin[next]; v < visits_.begin[next + 1]; ++v) {
      if (!schedule_.in_place[v] && is_fetched(units_, visits_, schedule_, v)) fetches.push_back(v);
    }
    if (order_ == FetchOrder::accesses) {
      std::stable_sort(fetches.begin(), fetches.end(), [&](std::uint32_t a, std::uint32_t b) {
        return units_.all[visits_.all[a].unit].accesses > units_.all[visits_.all[b].unit].accesses;
      });
    }
    awaited_.insert(awaited_.end(), fetches.begin(), fetches.end());
  }
}

/// Notes which of the three cases the interval begins with.
void MigrationWriter::judge(std::uint32_t interval) {
  if (interval == 0) return;
  for (std::uint32_t v = visits_.begin[interval]; v < visits_.begin[interval + 1]; ++v) {
    if (schedule_.in_place[v] || !is_fetched(units_, visits_, schedule_, v)) continue;
    const State& state = state_[visits_.all[v].unit];
    Case& stands = cases_[interval];
    if (is_awaited(v)) {
      stands = Case::no_room;
    } else if (state.ready > walk_.now && stands == Case::done) {
      stands = Case::no_time;
    }
  }
}

/// Returns whether the visit's unit is still to be fetched: it has not begun to come.
bool MigrationWriter::is_awaited(std::uint32_t visit) const {
  const State& state = state_[visits_.all[visit].unit];
  const bool begun = state.visit != kNever && visits_.all[state.visit].first >= visits_.all[visit].first;
  return !schedule_.in_place[visit] && !begun && (state.regions == 0 || state.leaving) &&
         holds_needed(units_.all[visits_.all[visit].unit]);
}

bool MigrationWriter::holds_needed(const Unit& unit) const {
  return std::any_of(unit.tensors.begin(), unit.tensors.end(), [&](TensorId tensor) {
    return needed_[tensor.index] && (stored_[tensor.index] || writer_.has(tensor, {0}));
  });
}

/// Returns whether the kernels lose less by using the unit where it is than by waiting for it.
bool MigrationWriter::is_better_left(std::uint32_t visit, Seconds arrival, Seconds needed) const {
  const Visit& what = visits_.all[visit];
  if (arrival <= needed || !units_.all[what.unit].in_place) return false;
  switch (end_.of(what.interval)) {
    case LateRule::wait:
      return false;
    case LateRule::leave:
      return true;
    case LateRule::predicted:
      break;
  }
  return slowdown(view_, units_, what, schedule_.slow) < arrival - needed;
}

void MigrationWriter::leave_in_slow(std::uint32_t visit) {
  const Visit& what = visits_.all[visit];
  schedule_.in_place[visit] = true;
  schedule_.planned.add(what.first, what.last, -size_of(what.unit));
  for (std::uint32_t i = what.touches; i < what.touches_end; ++i) {
    const Touch& touch = units_.all[what.unit].touches[i];
    schedule_.slow[touch.kernel] += touch.slow;
  }
  if (!schedule_.stays[visit]) return;
  // A unit that is used in slow memory is not in fast memory afterwards, so it cannot stay there.
  schedule_.stays[visit] = false;
  schedule_.planned.add(what.last + 1, visits_.all[what.next].first - 1, -size_of(what.unit));
}

void MigrationWriter::fetch_ahead(std::uint32_t kernel) {
  const auto missing_now = static_cast<std::int64_t>(missing(kernel).count);
  std::size_t looked = 0;
  for (auto next = awaited_.begin(); next != awaited_.end() && looked < kLookahead; ++looked) {
    const std::uint32_t v = *next;
    const Visit& visit = visits_.all[v];
    if (visit.previous != kNever && visits_.all[visit.previous].last >= kernel) {
      ++next;  // it is in use
      continue;
    }
    if (!keep(visit.unit, kernel)) return;
    if (!is_awaited(v)) {
      next = awaited_.erase(next);
      continue;
    }
    const std::int64_t size = size_of(visit.unit);
    // The first in order comes first: later ones must not take its room.
    if (!walk_.can_fetch(size, kernel, visit.first, missing_now, schedule_.planned)) return;
    const TierId from = *slower_tier_of(units_.all[visit.unit]);
    const Seconds needed = walk_.expected(kernel, visit.first);
    const bool left =
        machine_[from].addressable &&
        is_better_left(v, walk_.links.end_of(from, {0}, units_.all[visit.unit].size, walk_.now), needed);
    left ? leave_in_slow(v) : fetch(v, kernel);
    next = awaited_.erase(next);
  }
}

}  // namespace terrace::migration

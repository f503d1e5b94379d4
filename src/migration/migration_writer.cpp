// SPDX-License-Identifier: Apache-2.0
#include "migration/migration_writer.hpp"

#include <algorithm>
#include <utility>

#include "migration/variant_choice.hpp"
#include "plan/operand_tiers.hpp"

namespace terrace::migration {

MigrationWriter::MigrationWriter(const StepView& view, const Units& units, const Visits& visits,
                                 Schedule schedule, Bytes capacity, const IntervalEnd& end, FetchOrder order,
                                 std::uint32_t ahead, Stores stores, Reserve reserve)
    : view_(view),
      graph_(view.request.graph),
      machine_(view.request.machine),
      units_(units),
      visits_(visits),
      schedule_(std::move(schedule)),
      end_(end),
      order_(order),
      ahead_(ahead),
      writer_(view.request, "sentinel"),
      state_(units.all.size()),
      needed_(graph_.tensors.size()),
      stored_(graph_.tensors.size()),
      in_backing_tier_(units.all.size()),
      walk_(machine_, view.begin, capacity),
      cases_(visits.intervals(), Case::done),
      waited_(visits.intervals()) {
  for (const Unit& unit : units.all) {
    if (unit.tensors.size() > 1) writer_.keep_together(unit.tensors);
    if (unit.short_lived && reserve == Reserve::contiguous) writer_.reserve(unit.tensors.front());
  }
  for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) needed_[i] = view.uses.first_reads({i});
  if (stores == Stores::ahead) plan_stores();
}

Result<Draft> MigrationWriter::write(PackingEffort effort) {
  if (auto begun = begin(); !begun) return begun.error();
  for (std::uint32_t kernel = 0; kernel <= view_.kernels(); ++kernel) {
    if (auto ran = run(kernel); !ran) return ran.error();
  }
  finish();
  return writer_.finish(effort);
}

Result<void> MigrationWriter::begin() {
  for (std::uint32_t u = 0; u < units_.all.size(); ++u) {
    const Unit& unit = units_.all[u];
    if (!unit.persistent && !unit.given) continue;
    TierId start{0};
    const bool away = unit.persistent ? !schedule_.returns[u] : unit.in_place;
    if (!schedule_.from_start[u] && away) {
      const auto spill = spill_tier(unit);
      if (!spill) return spill.error();
      // What is given is filled where kernels could use it.
      if (unit.persistent || machine_[*spill].addressable) start = *spill;
    }
    in_backing_tier_[u] = start != TierId{0};
    for (const TensorId tensor : unit.tensors) {
      writer_.start(tensor, start);
      stored_[tensor.index] = in_backing_tier_[u];
    }
    if (in_backing_tier_[u]) continue;
    state_[u].regions = static_cast<std::uint32_t>(unit.tensors.size());
    walk_.used += size_of(u);
  }
  for (std::uint32_t u = 0; u < units_.all.size(); ++u) {
    const bool leaves = (units_.all[u].given || schedule_.returns[u]) && !schedule_.from_start[u];
    if (!leaves || in_backing_tier_[u]) continue;
    if (auto left = leave(u, 0); !left) return left;
  }
  return {};
}

Result<void> MigrationWriter::run(std::uint32_t kernel) {
  const std::uint32_t interval = visits_.interval_of[kernel];
  if (kernel == 0 || visits_.interval_of[kernel - 1] != interval) begin_interval(interval);
  make_room(kernel);
  begin_visits(kernel);
  fetch_ahead(kernel);
  if (kernel < view_.kernels()) {
    store_ahead(kernel);
    if (auto computed = compute(kernel); !computed) return computed;
  }
  return end_visits(kernel);
}

void MigrationWriter::make_room(std::uint32_t kernel) {
  while (!walk_.departing.empty() && walk_.departing.front().end <= walk_.now) finish_leaving(0, kernel);
  for (const Use& use : view_.uses.of(kernel)) keep(units_.of[use.tensor.index], kernel);
  while (!walk_.has_room(static_cast<std::int64_t>(missing(kernel).count)) && !walk_.departing.empty()) {
    finish_leaving(0, kernel);
  }
}

/// Brings what the kernel needs and waits for it.
void MigrationWriter::begin_visits(std::uint32_t kernel) {
  for (const Use& use : view_.uses.of(kernel)) {
    const std::uint32_t u = units_.of[use.tensor.index], visit = visit_at(u, kernel);
    if (visit != state_[u].visit) begin_visit(visit, kernel);
  }
  for (const Use& use : view_.uses.of(kernel)) {
    State& state = state_[units_.of[use.tensor.index]];
    for (const std::uint32_t ticket : std::exchange(state.tickets, {})) writer_.wait(ticket);
    const Seconds begin = std::max(walk_.now, std::exchange(state.ready, Seconds{0}));
    waited_[visits_.interval_of[kernel]] += begin - walk_.now;
    walk_.now = begin;
  }
}

void MigrationWriter::begin_visit(std::uint32_t visit, std::uint32_t kernel) {
  const std::uint32_t u = visits_.all[visit].unit;
  const auto from = slower_tier_of(units_.all[u]);
  const bool usable = !from || machine_[*from].addressable;
  // Its backing tier had no room, and it went to another.
  if (!usable) schedule_.in_place[visit] = false;
  if (is_awaited(visit)) {
    const bool left =
        usable &&
        is_better_left(visit, walk_.links.end_of(*from, {0}, units_.all[u].size, walk_.now), walk_.now);
    left ? leave_in_slow(visit) : fetch(visit, kernel);
  }
  state_[u].visit = visit;
}

/// Returns the visit that the unit's use by this kernel belongs to.
std::uint32_t MigrationWriter::visit_at(std::uint32_t u, std::uint32_t kernel) const {
  const std::uint32_t visit = state_[u].visit;
  if (visit == kNever) return visits_.first[u];
  return visits_.all[visit].last < kernel ? visits_.all[visit].next : visit;
}

Result<void> MigrationWriter::compute(std::uint32_t kernel) {
  if (auto made = make_operands(kernel); !made) return made;
  std::vector<TierId> tiers =
      operand_tiers(graph_.kernels[kernel], [&](TensorId tensor) { return tier_of(tensor); });
  const std::uint32_t variant = fastest_variant(graph_, view_.request.profile, {kernel});
  walk_.now = walk_.links.end_of_kernel(view_.clock.time({kernel}, variant, tiers), walk_.now);
  writer_.run({kernel}, std::move(tiers), variant);
  for (const Use& use : view_.uses.of(kernel)) after_use(use);
  return {};
}

/// Makes the regions of the kernel's operands that do not exist yet.
Result<void> MigrationWriter::make_operands(std::uint32_t kernel) {
  for (const Use& use : view_.uses.of(kernel)) {
    const std::uint32_t u = units_.of[use.tensor.index];
    const bool slow = schedule_.in_place[state_[u].visit];
    if (writer_.has(use.tensor, {0}) || (slow && tier_of(use.tensor) != TierId{0})) continue;
    if (slow) {
      const auto tier = spill_tier(units_.all[u]);
      if (!tier) return tier.error();
      if (machine_[*tier].addressable) {
        writer_.alloc(use.tensor, *tier);
        continue;
      }
    }
    make_fast(use.tensor);
  }
  return {};
}

void MigrationWriter::after_use(const Use& use) {
  const Tensor& tensor = graph_[use.tensor];
  const std::uint32_t u = units_.of[use.tensor.index];
  const bool fast = writer_.has(use.tensor, {0});
  if (use.writes) {
    stored_[use.tensor.index] = !fast;
    if (fast && !in_backing_tier_[u]) free_slow(use.tensor);
  }
  needed_[use.tensor.index] = use.next != kNever ? use.next_reads : tensor.persistent;
  if (use.next != kNever || tensor.persistent) return;
  if (fast) free_fast(use.tensor);
  if (!in_backing_tier_[u]) free_slow(use.tensor);
}

/// Returns whether the unit is in fast memory until its next visit, or until the step ends.
bool MigrationWriter::remains(std::uint32_t visit) const {
  const Visit& what = visits_.all[visit];
  return what.next == kNever ? schedule_.returns[what.unit] : schedule_.stays[visit];
}

Result<void> MigrationWriter::end_visits(std::uint32_t kernel) {
  if (kernel == view_.kernels()) return {};
  for (const Use& use : view_.uses.of(kernel)) {
    const std::uint32_t u = units_.of[use.tensor.index];
    const State& state = state_[u];
    const Visit& visit = visits_.all[state.visit];
    if (visit.last != kernel || state.regions == 0 || state.leaving) continue;
    if (remains(state.visit) || is_pinned(units_, schedule_, u)) continue;
    if (auto left = leave(u, kernel + 1); !left) return left;
  }
  return {};
}

}  // namespace terrace::migration

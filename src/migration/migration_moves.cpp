// SPDX-License-Identifier: Apache-2.0
// How units come and go, and what the writer knows of tiers and links.
#include <algorithm>
#include <utility>

#include "migration/migration_writer.hpp"

namespace terrace::migration {

void MigrationWriter::fetch(std::uint32_t visit, std::uint32_t kernel) {
  const Visit& what = visits_.all[visit];
  const Unit& unit = units_.all[what.unit];
  State& state = state_[what.unit];
  const TierId from = *slower_tier_of(unit);
  std::vector<bool> wanted;
  for (const TensorId tensor : unit.tensors) {
    wanted.push_back(needed_[tensor.index]);
    if (wanted.back()) make_fast(tensor);
  }
  state.ready = walk_.links.start(from, {0}, unit.size, walk_.now);
  state.tickets = copy_runs(unit, from, {0}, wanted);
  if (what.first > kernel) schedule_.planned.add(kernel, what.first - 1, size_of(what.unit));
}

/// `next_kernel`: the one that runs next.
Result<void> MigrationWriter::leave(std::uint32_t u, std::uint32_t next_kernel) {
  const Unit& unit = units_.all[u];
  std::vector<bool> wanted;
  for (const TensorId tensor : unit.tensors) {
    wanted.push_back(writer_.has(tensor, {0}) && needed_[tensor.index] && !stored_[tensor.index]);
  }
  State& state = state_[u];
  Departure leaving{u, std::exchange(state.stores, {}), std::max(walk_.now, state.stored), next_kernel};
  if (std::find(wanted.begin(), wanted.end(), true) != wanted.end()) {
    const auto spill = spill_tier(unit);
    if (!spill) return spill.error();
    for (std::size_t i = 0; i < unit.tensors.size(); ++i) {
      if (wanted[i] && !writer_.has(unit.tensors[i], *spill)) writer_.alloc(unit.tensors[i], *spill);
      if (wanted[i]) stored_[unit.tensors[i].index] = true;
    }
    leaving.tickets = copy_runs(unit, {0}, *spill, wanted);
    leaving.end = walk_.links.start({0}, *spill, unit.size, walk_.now);
  }
  state.leaving = true;
  const bool at_once = leaving.end <= walk_.now;
  walk_.book(leaving, size_of(u), next_kernel, schedule_.planned);
  auto& departing = walk_.departing;
  const auto place = std::upper_bound(departing.begin(), departing.end(), leaving.end,
                                      [](Seconds end, const Departure& other) { return end < other.end; });
  const auto index = static_cast<std::size_t>(place - departing.begin());
  departing.insert(place, std::move(leaving));
  if (at_once) finish_leaving(index, next_kernel);
  return {};
}

void MigrationWriter::finish_leaving(std::size_t index, std::uint32_t next_kernel) {
  const Departure gone = std::move(walk_.departing[index]);
  walk_.departing.erase(walk_.departing.begin() + static_cast<std::ptrdiff_t>(index));
  walk_.give_up(gone, size_of(gone.what), next_kernel, schedule_.planned);
  for (const std::uint32_t ticket : gone.tickets) writer_.wait(ticket);
  state_[gone.what].leaving = false;
  for (const TensorId tensor : units_.all[gone.what].tensors) {
    if (writer_.has(tensor, {0})) free_fast(tensor);
  }
}

/// A unit that is needed in fast memory while it is still leaving stays, if there is room for it until
/// then. Returns whether it is no longer leaving, one way or the other.
bool MigrationWriter::keep(std::uint32_t u, std::uint32_t kernel) {
  State& state = state_[u];
  if (!state.leaving) return true;
  auto& departing = walk_.departing;
  const auto found = std::find_if(departing.begin(), departing.end(),
                                  [&](const Departure& departure) { return departure.what == u; });
  const std::uint32_t next = state.visit == kNever ? visits_.first[u] : visits_.all[state.visit].next;
  if (next == kNever || schedule_.in_place[next]) {
    finish_leaving(static_cast<std::size_t>(found - departing.begin()), kernel);
    return true;
  }
  if (!walk_.call_back(*found, size_of(u), kernel, visits_.all[next].first, schedule_.planned)) return false;
  state.leaving = false;
  state.tickets = found->tickets;
  state.ready = found->end;
  departing.erase(found);
  return true;
}

/// Brings everything back to where it was when the step started; results keep one region each.
void MigrationWriter::finish() {
  while (!walk_.departing.empty()) finish_leaving(0, view_.kernels());
  for (std::uint32_t u = 0; u < units_.all.size(); ++u) {
    for (auto* tickets : {&state_[u].tickets, &state_[u].stores}) {
      for (const std::uint32_t ticket : std::exchange(*tickets, {})) writer_.wait(ticket);
    }
    for (const TensorId tensor : units_.all[u].tensors) {
      const bool fast = writer_.has(tensor, {0});
      if (units_.all[u].given) {
        if (fast && in_backing_tier_[u]) free_fast(tensor);
        if (!in_backing_tier_[u]) free_slow(tensor);
        if (!fast && !in_backing_tier_[u]) writer_.restore(tensor, {0});
      } else if (!units_.all[u].persistent && fast) {
        free_slow(tensor);
      } else if (schedule_.from_start[u] || schedule_.returns[u]) {
        free_slow(tensor);
        writer_.put_back(tensor, {0});
      }
    }
  }
}

/// Returns the tier of the unit's regions outside fast memory, if it has any.
std::optional<TierId> MigrationWriter::slower_tier_of(const Unit& unit) const {
  for (const TensorId tensor : unit.tensors) {
    for (std::uint32_t tier = 1; tier < machine_.tiers.size(); ++tier) {
      if (writer_.has(tensor, {tier})) return TierId{tier};
    }
  }
  return std::nullopt;
}

/// Returns the tier where the unit's slower regions are, or will be.
Result<TierId> MigrationWriter::spill_tier(const Unit& unit) {
  if (const auto tier = slower_tier_of(unit)) return *tier;
  if (unit.backing_tier && writer_.has_room(unit.tensors.front(), *unit.backing_tier))
    return *unit.backing_tier;
  return writer_.spill_tier(unit.tensors.front());
}

/// Returns the tier where kernels use the tensor: fast memory, if it is there.
TierId MigrationWriter::tier_of(TensorId tensor) const {
  for (std::uint32_t tier = 0; tier < machine_.tiers.size(); ++tier) {
    if (writer_.has(tensor, {tier})) return TierId{tier};
  }
  return {0};
}

/// Copies with as few transfers as tensors that lie side by side allow. Returns their tickets.
std::vector<std::uint32_t> MigrationWriter::copy_runs(const Unit& unit, TierId from, TierId to,
                                                      const std::vector<bool>& wanted) {
  std::vector<std::uint32_t> tickets;
  std::vector<TensorId> run;
  for (std::size_t i = 0; i <= wanted.size(); ++i) {
    if (i < wanted.size() && wanted[i]) {
      run.push_back(unit.tensors[i]);
    } else if (!run.empty()) {
      tickets.push_back(writer_.copy(std::exchange(run, {}), from, to));
    }
  }
  return tickets;
}

/// Returns the bytes of the kernel's operands that are not in fast memory yet.
Bytes MigrationWriter::missing(std::uint32_t kernel) const {
  Bytes bytes{};
  const auto uses = view_.uses.of(kernel);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const std::uint32_t u = units_.of[uses[i].tensor.index];
    if (state_[u].regions > 0) continue;
    const auto counted = std::any_of(uses.begin(), uses.begin() + static_cast<std::ptrdiff_t>(i),
                                     [&](const Use& use) { return units_.of[use.tensor.index] == u; });
    if (!counted && !schedule_.in_place[visit_at(u, kernel)]) bytes += units_.all[u].size;
  }
  return bytes;
}

void MigrationWriter::make_fast(TensorId tensor) {
  const std::uint32_t u = units_.of[tensor.index];
  if (state_[u].regions++ == 0) walk_.used += size_of(u);
  writer_.alloc(tensor, {0});
}

void MigrationWriter::free_fast(TensorId tensor) {
  const std::uint32_t u = units_.of[tensor.index];
  if (--state_[u].regions == 0) walk_.used -= size_of(u);
  writer_.free(tensor, {0});
}

void MigrationWriter::free_slow(TensorId tensor) {
  for (std::uint32_t tier = 1; tier < machine_.tiers.size(); ++tier) {
    if (writer_.has(tensor, {tier})) writer_.free(tensor, {tier});
  }
}

}  // namespace terrace::migration

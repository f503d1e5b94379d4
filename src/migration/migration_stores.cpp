// SPDX-License-Identifier: Apache-2.0
// What leaves fast memory is written to its backing tier while kernels still read it.
#include <algorithm>

#include "migration/link_use.hpp"
#include "migration/migration_writer.hpp"

namespace terrace::migration {

/// A store begins beside the first kernel from which on its unit leaves in time, after the last that writes
/// it.
void MigrationWriter::plan_stores() {
  stores_.resize(view_.kernels());
  for (std::uint32_t v = 0; v < visits_.all.size(); ++v) {
    const Visit& last = visits_.all[v];
    const Unit& unit = units_.all[last.unit];
    if (schedule_.in_place[v] || remains(v) || unit.tensors.size() > 1 || !unit.backing_tier) continue;
    if (is_pinned(units_, schedule_, last.unit)) continue;
    if (last.last >= view_.kernels() || !is_read_later(unit.tensors.front(), last.last)) continue;
    std::uint32_t first = v;
    while (!visits_.all[first].writes && visits_.all[first].previous != kNever &&
           schedule_.stays[visits_.all[first].previous])
      first = visits_.all[first].previous;
    const bool was_there = visits_.all[first].previous == kNever && schedule_.returns[last.unit] &&
                           schedule_.from_start[last.unit] && !visits_.all[first].writes;
    const std::uint32_t earliest =
        was_there ? 0 : visits_.all[first].last + (visits_.all[first].writes ? 1 : 0);
    if (earliest > last.last) continue;
    const Seconds takes = time_beside_kernels(*machine_.link({0}, *unit.backing_tier), unit.size);
    const Seconds begin = view_.begin[last.last + 1] - takes;
    const auto found =
        std::upper_bound(view_.begin.begin() + earliest, view_.begin.begin() + last.last, begin);
    const auto kernel = static_cast<std::uint32_t>(found - view_.begin.begin());
    stores_[kernel > earliest ? kernel - 1 : earliest].push_back({last.unit, last.last});
  }
}

/// Returns whether a later kernel reads the tensor. pre: the kernel uses the tensor
bool MigrationWriter::is_read_later(TensorId tensor, std::uint32_t kernel) const {
  const auto uses = view_.uses.of(kernel);
  const auto use =
      std::find_if(uses.begin(), uses.end(), [&](const Use& one) { return one.tensor == tensor; });
  return use->next != kNever ? use->next_reads : graph_[tensor].persistent;
}

bool MigrationWriter::is_storable(std::uint32_t u) const {
  const TensorId tensor = units_.all[u].tensors.front();
  const State& state = state_[u];
  return writer_.has(tensor, {0}) && state.tickets.empty() && !state.leaving && needed_[tensor.index] &&
         !stored_[tensor.index];
}

/// Starts the stores that are due. What has left already goes first where links are busy with it.
void MigrationWriter::store_ahead(std::uint32_t kernel) {
  if (stores_.empty()) return;
  due_.insert(due_.end(), stores_[kernel].begin(), stores_[kernel].end());
  while (!due_.empty()) {
    const auto [u, last] = due_.front();
    if (kernel <= last && is_storable(u)) {
      const auto spill = spill_tier(units_.all[u]);
      if (spill && walk_.links.free_at({0}, *spill) > walk_.now) return;
      if (spill) store(u, *spill);  // else there may be room when it leaves
    }
    due_.pop_front();
  }
}

void MigrationWriter::store(std::uint32_t u, TierId to) {
  const Unit& unit = units_.all[u];
  const TensorId tensor = unit.tensors.front();
  if (!writer_.has(tensor, to)) writer_.alloc(tensor, to);
  state_[u].stores = copy_runs(unit, {0}, to, {true});
  state_[u].stored = walk_.links.start({0}, to, unit.size, walk_.now);
  stored_[tensor.index] = true;
}

}  // namespace terrace::migration

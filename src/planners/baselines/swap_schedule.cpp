// SPDX-License-Identifier: Apache-2.0
#include "planners/baselines/swap_schedule.hpp"

#include <algorithm>
#include <iterator>

#include "migration/demand_writer.hpp"
#include "migration/fit.hpp"
#include "migration/step_writer.hpp"
#include "plan/region_size.hpp"

namespace terrace {
namespace {

Bytes fast_size(const PlanRequest& request, TensorId tensor) {
  return region_size(request.graph[tensor], request.machine.tiers[0]);
}

/// Returns by tensor whether it always stays in fast memory, as all do on a machine with one tier.
std::vector<bool> stays(const PlanRequest& request) {
  if (request.machine.tiers.size() < 2) return std::vector<bool>(request.graph.tensors.size(), true);
  return results_that_stay(request.graph);
}

bool leaves(const Movement& movement, std::uint32_t kernels) {
  return movement.stretch.after == kNever || movement.stretch.until == kernels ||
         movement.gone < movement.back || movement.recomputed_by;
}

/// Turns movements into a residency; whether an eviction has to store the tensor follows from those before
/// it.
Residency residency_of(const PlanRequest& request, const StepUses& uses,
                       std::span<const Movement> movements) {
  const Graph& graph = request.graph;
  Residency residency;
  for (const Tensor& tensor : graph.tensors) residency.pinned.push_back(tensor.persistent);
  std::vector<std::vector<std::uint32_t>> after(uses.kernels());
  for (std::uint32_t i = 0; i < movements.size(); ++i) {
    const Movement& moves = movements[i];
    if (graph[moves.tensor].persistent) residency.pinned[moves.tensor.index] = false;
    const bool fetches = moves.stretch.needed && !moves.recomputed_by && moves.stretch.until < uses.kernels();
    residency.evictions.push_back(
        {moves.tensor, moves.stretch.after, moves.gone, moves.stretch.until, false, fetches});
    if (moves.stretch.after != kNever) after[moves.stretch.after].push_back(i);
  }
  std::vector<bool> stored(graph.tensors.size());
  for (std::size_t i = 0; i < stored.size(); ++i)
    stored[i] = graph.tensors[i].persistent && !residency.pinned[i];
  for (std::uint32_t k = 0; k < uses.kernels(); ++k) {
    for (const Use& use : uses.of(k)) {
      if (use.writes) stored[use.tensor.index] = false;
    }
    for (const std::uint32_t i : after[k]) {
      const std::uint32_t tensor = movements[i].tensor.index;
      if (!movements[i].stretch.needed || movements[i].recomputed_by) continue;
      residency.evictions[i].stores = !stored[tensor];
      stored[tensor] = true;
    }
  }
  return residency;
}

/// Returns for each kernel the movements whose `time` it is.
std::vector<std::vector<std::uint32_t>> by(std::span<const Movement> movements, std::uint32_t kernels,
                                           const std::function<std::uint32_t(const Movement&)>& time) {
  std::vector<std::vector<std::uint32_t>> index(kernels + 1);
  for (std::uint32_t i = 0; i < movements.size(); ++i) index[time(movements[i])].push_back(i);
  return index;
}

}  // namespace

std::vector<Absence> absences(const PlanRequest& request, const StepUses& uses) {
  const Graph& graph = request.graph;
  const std::vector<bool> fixed = stays(request);
  std::vector<Absence> found;
  std::vector<Absence> kept(graph.tensors.size());
  for (std::uint32_t k = 0; k < uses.kernels(); ++k) {
    for (const Use& use : uses.of(k)) {
      if (fixed[use.tensor.index] || graph[use.tensor].bytes.count == 0) continue;
      const bool persistent = graph[use.tensor].persistent;
      std::vector<Stretch>& out = kept[use.tensor.index].out;
      if (persistent && out.empty()) out.push_back({kNever, k, use.reads});
      if (persistent && use.next == kNever) out.push_back({k, uses.kernels(), true});
      const bool ends = !persistent && use.next == uses.kernels();  // a result is read at the step's end
      if (use.next == kNever || use.next == k + 1 || ends) continue;
      const Stretch stretch{k, use.next, use.next_reads};
      if (persistent) {
        out.push_back(stretch);
      } else {
        found.push_back({use.tensor, fast_size(request, use.tensor), {stretch}});
      }
    }
  }
  for (std::uint32_t i = 0; i < kept.size(); ++i) {
    if (!kept[i].out.empty()) found.push_back({{i}, fast_size(request, {i}), std::move(kept[i].out)});
  }
  return found;
}

Movement on_demand(const Absence& absence, const Stretch& stretch) {
  const std::uint32_t out = stretch.after == kNever ? 0 : stretch.after + 1;
  return {absence.tensor, stretch, out, out, stretch.until};
}

std::vector<std::int64_t> bytes_if_all_stay(const PlanRequest& request, const StepUses& uses) {
  const Graph& graph = request.graph;
  const std::uint32_t end = uses.kernels();
  std::vector<std::uint32_t> last(graph.tensors.size(), kNever);
  for (std::uint32_t k = 0; k <= end; ++k) {
    for (const Use& use : uses.of(k)) last[use.tensor.index] = k;
  }
  std::vector<std::int64_t> bytes(end + 2);
  for (std::uint32_t i = 0; i < last.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    const auto size = static_cast<std::int64_t>(fast_size(request, {i}).count);
    const bool unused = last[i] == kNever;
    if (unused && !tensor.persistent && !is_given(tensor)) continue;
    bytes[tensor.persistent || is_given(tensor) ? 0 : uses.first({i})] += size;
    bytes[(tensor.persistent || unused ? end : last[i]) + 1] -= size;
  }
  for (std::size_t k = 1; k < bytes.size(); ++k) bytes[k] += bytes[k - 1];
  bytes.pop_back();
  return bytes;
}

std::vector<std::int64_t> bytes_left(const PlanRequest& request, std::vector<std::int64_t> bytes,
                                     std::span<const Movement> movements) {
  std::vector<std::int64_t> change(bytes.size() + 1);
  for (const Movement& moves : movements) {
    const bool ends = moves.stretch.until + 1 == bytes.size();
    const std::uint32_t until = ends ? moves.stretch.until + 1 : moves.back;
    if (moves.gone >= until) continue;
    const auto size = static_cast<std::int64_t>(fast_size(request, moves.tensor).count);
    change[moves.gone] -= size;
    change[until] += size;
  }
  for (std::size_t k = 1; k < change.size(); ++k) change[k] += change[k - 1];
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] += change[k];
  return bytes;
}

Result<Draft> write_movements(const PlanRequest& request, const StepUses& uses,
                              std::span<const Movement> chosen, const std::string& planner,
                              PackingEffort effort) {
  const std::uint32_t end = uses.kernels();
  std::vector<Movement> movements;
  std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(movements),
               [&](const Movement& movement) { return leaves(movement, end); });
  const Residency residency = residency_of(request, uses, movements);
  const auto leave = by(movements, end, [](const Movement& m) { return m.leave; });
  const auto gone = by(movements, end, [](const Movement& m) { return m.gone; });
  const auto back = by(movements, end, [](const Movement& m) { return m.back; });
  const auto until = by(movements, end, [](const Movement& m) { return m.stretch.until; });
  std::vector<std::uint32_t> out(movements.size()), in(movements.size());
  StepWriter writer(request, uses, residency, planner);
  if (auto begun = writer.begin(); !begun) return begun.error();
  for (std::uint32_t k = 0; k <= end; ++k) {
    for (const std::uint32_t i : leave[k]) {
      if (!residency.evictions[i].stores) continue;
      const auto ticket = writer.store(movements[i].tensor);
      if (!ticket) return ticket.error();
      out[i] = *ticket;
    }
    for (const std::uint32_t i : gone[k]) {
      if (residency.evictions[i].stores) writer.wait(out[i]);
      if (movements[i].stretch.after != kNever) writer.drop(movements[i].tensor);
    }
    for (const std::uint32_t i : back[k]) {
      if (residency.evictions[i].fetches) in[i] = writer.fetch(movements[i].tensor);
    }
    for (const std::uint32_t i : until[k]) {
      if (residency.evictions[i].fetches) writer.wait(in[i]);
    }
    for (const std::uint32_t i : until[k]) {
      if (movements[i].recomputed_by) writer.recompute(movements[i].recomputed_by);
    }
    if (k < end) writer.run(k);
  }
  return writer.finish(effort);
}

Result<Plan> plan_swapped(const PlanRequest& request, const StepUses& uses, const std::string& planner,
                          const std::function<Result<Draft>(Bytes capacity)>& draft) {
  return plan_to_fit(request, uses, planner, [&](Bytes capacity) -> Result<Draft> {
    auto made = draft(capacity);
    if (made) return made;
    const auto residency = decide_residency(request, uses, capacity, farthest_next_use);
    if (!residency) return residency.error();
    return write_on_demand(request, uses, *residency, planner);
  });
}

}  // namespace terrace

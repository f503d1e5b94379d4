// SPDX-License-Identifier: Apache-2.0
#include "migration/repack.hpp"

#include "migration/plan_writer.hpp"

namespace terrace {
namespace {

/// Returns whether every region is made once, where the graph and the machine have its tensor and tier, and
/// is there when it ends.
bool holds_together(const PlanRequest& request, const Plan& plan) {
  const std::size_t tiers = request.machine.tiers.size();
  std::vector<bool> there(request.graph.tensors.size() * tiers);
  const auto set = [&](TensorId tensor, TierId tier, bool now) {
    if (tensor.index >= request.graph.tensors.size() || tier.index >= tiers) return false;
    auto region = there[tensor.index * tiers + tier.index];
    if (region == now) return false;
    region = now;
    return true;
  };
  for (const Alloc& region : plan.start) {
    if (!set(region.tensor, region.tier, true)) return false;
  }
  for (const Instruction& one : plan.instructions) {
    const auto* alloc = std::get_if<Alloc>(&one);
    const auto* free = std::get_if<Free>(&one);
    if (alloc != nullptr && !set(alloc->tensor, alloc->tier, true)) return false;
    if (free != nullptr && !set(free->tensor, free->tier, false)) return false;
  }
  return true;
}

/// The instructions that make a region of the start again for good: it lies where it was.
std::vector<bool> restoring(const PlanRequest& request, const Plan& plan) {
  const std::size_t tiers = request.machine.tiers.size();
  constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::size_t> last(request.graph.tensors.size() * tiers, kNone);
  std::vector<bool> from_start(last.size()), restores(plan.instructions.size());
  const auto place = [&](TensorId tensor, TierId tier) { return tensor.index * tiers + tier.index; };
  for (const Alloc& region : plan.start) from_start[place(region.tensor, region.tier)] = true;
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    if (const auto* alloc = std::get_if<Alloc>(&plan.instructions[i]))
      last[place(alloc->tensor, alloc->tier)] = i;
    if (const auto* free = std::get_if<Free>(&plan.instructions[i]))
      last[place(free->tensor, free->tier)] = kNone;
  }
  for (std::size_t i = 0; i < last.size(); ++i) {
    if (last[i] != kNone && from_start[i]) restores[last[i]] = true;
  }
  return restores;
}

}  // namespace

Plan with_offsets(const PlanRequest& request, Plan plan) {
  plan.budget = request.budget;
  if (!holds_together(request, plan)) return plan;
  const std::vector<bool> restores = restoring(request, plan);
  PlanWriter writer(request, plan.planner);
  for (const Alloc& region : plan.start) writer.start(region.tensor, region.tier);
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    if (const auto* alloc = std::get_if<Alloc>(&plan.instructions[i])) {
      restores[i] ? writer.restore(alloc->tensor, alloc->tier) : writer.alloc(alloc->tensor, alloc->tier);
    } else if (const auto* free = std::get_if<Free>(&plan.instructions[i])) {
      writer.free(free->tensor, free->tier);
    } else {
      writer.wait(0);  // Whatever else happens takes its place in time, and no room.
    }
  }
  Draft draft = writer.finish();
  plan.start = std::move(draft.plan.start);
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    if (auto* alloc = std::get_if<Alloc>(&plan.instructions[i]))
      alloc->offset = std::get<Alloc>(draft.plan.instructions[i]).offset;
  }
  plan.budget = std::move(draft.needed);
  return plan;
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "migration/repack.hpp"

#include "migration/plan_writer.hpp"

namespace terrace {
namespace {

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

/// The groups of a plan writer for chains of regions, each made when its first region is.
class ChainGroups {
 public:
  ChainGroups(PlanWriter& writer, const PlanRegions& regions, const Neighbours& neighbours)
      : writer_(writer), regions_(regions), neighbours_(neighbours), groups_(regions.all.size(), kNotMade) {}

  PlanWriter::Group of(std::uint32_t region) {
    const std::uint32_t chain = neighbours_.chain_of(region);
    if (neighbours_.members(chain).size() == 1) return PlanWriter::kAlone;
    if (groups_[chain] == kNotMade) {
      std::vector<TensorId> tensors;
      for (const std::uint32_t one : neighbours_.in_order(chain)) tensors.push_back(regions_.all[one].tensor);
      groups_[chain] = writer_.make_group(std::move(tensors));
    }
    return groups_[chain];
  }

 private:
  static constexpr PlanWriter::Group kNotMade = PlanWriter::kAlone;
  PlanWriter& writer_;
  const PlanRegions& regions_;
  const Neighbours& neighbours_;
  std::vector<PlanWriter::Group> groups_;  ///< by chain
};

}  // namespace

Plan with_offsets(const PlanRequest& request, Plan plan) {
  if (!holds_together(request, plan)) {
    plan.budget = request.budget;
    return plan;
  }
  const PlanRegions regions = regions_of(request, plan);
  Neighbours neighbours(regions.all);
  add_copies(regions, neighbours);
  return with_offsets(request, std::move(plan), regions, neighbours);
}

Plan with_offsets(const PlanRequest& request, Plan plan, const PlanRegions& regions,
                  const Neighbours& neighbours) {
  const std::vector<bool> restores = restoring(request, plan);
  PlanWriter writer(request, plan.planner);
  ChainGroups groups(writer, regions, neighbours);
  for (std::size_t i = 0; i < plan.start.size(); ++i)
    writer.start(plan.start[i].tensor, plan.start[i].tier, groups.of(regions.start[i]));
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    if (const auto* alloc = std::get_if<Alloc>(&plan.instructions[i])) {
      restores[i] ? writer.restore(alloc->tensor, alloc->tier)
                  : writer.alloc(alloc->tensor, alloc->tier, groups.of(regions.made_by[i]));
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

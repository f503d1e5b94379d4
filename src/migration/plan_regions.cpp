// SPDX-License-Identifier: Apache-2.0
#include "migration/plan_regions.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace {
namespace {

/// The region that a tensor has in a tier now, or kNoRegion.
class Current {
 public:
  explicit Current(const PlanRequest& request)
      : tiers_(request.machine.tiers.size()),
        tensors_(request.graph.tensors.size()),
        regions_(tensors_ * tiers_, kNoRegion) {}

  bool knows(TensorId tensor, TierId tier) const { return tensor.index < tensors_ && tier.index < tiers_; }
  std::uint32_t& of(TensorId tensor, TierId tier) { return regions_[tensor.index * tiers_ + tier.index]; }

 private:
  std::size_t tiers_, tensors_;
  std::vector<std::uint32_t> regions_;
};

}  // namespace

bool holds_together(const PlanRequest& request, const Plan& plan) {
  Current current(request);
  const auto is = [&](TensorId tensor, TierId tier, bool there) {
    return current.knows(tensor, tier) && (current.of(tensor, tier) != kNoRegion) == there;
  };
  const auto make = [&](const Alloc& region) {
    if (!is(region.tensor, region.tier, false)) return false;
    current.of(region.tensor, region.tier) = 0;
    return true;
  };
  if (!std::all_of(plan.start.begin(), plan.start.end(), make)) return false;
  for (const Instruction& one : plan.instructions) {
    if (const auto* alloc = std::get_if<Alloc>(&one); alloc != nullptr && !make(*alloc)) return false;
    if (const auto* free = std::get_if<Free>(&one)) {
      if (!is(free->tensor, free->tier, true)) return false;
      current.of(free->tensor, free->tier) = kNoRegion;
    }
    if (const auto* copy = std::get_if<Copy>(&one)) {
      for (const TensorId tensor : copy->tensors)
        if (!is(tensor, copy->from, true) || !is(tensor, copy->to, true)) return false;
    }
  }
  return true;
}

PlanRegions regions_of(const PlanRequest& request, const Plan& plan) {
  PlanRegions regions;
  regions.made_by.assign(plan.instructions.size(), kNoRegion);
  Current current(request);
  const auto make = [&](const Alloc& alloc, std::uint32_t made) {
    const auto number = static_cast<std::uint32_t>(regions.all.size());
    regions.all.push_back({alloc.tensor, alloc.tier, made});
    return current.of(alloc.tensor, alloc.tier) = number;
  };
  for (const Alloc& alloc : plan.start) regions.start.push_back(make(alloc, PlanRegion::kStart));
  for (std::uint32_t i = 0; i < plan.instructions.size(); ++i) {
    if (const auto* alloc = std::get_if<Alloc>(&plan.instructions[i])) {
      regions.made_by[i] = make(*alloc, i);
    } else if (const auto* free = std::get_if<Free>(&plan.instructions[i])) {
      std::uint32_t& region = current.of(free->tensor, free->tier);
      regions.all[region].freed = i;
      region = kNoRegion;
    } else if (const auto* copy = std::get_if<Copy>(&plan.instructions[i])) {
      CopiedRegions& copied = regions.copies.emplace_back();
      copied.instruction = i;
      for (const TensorId tensor : copy->tensors) {
        copied.from.push_back(current.of(tensor, copy->from));
        copied.to.push_back(current.of(tensor, copy->to));
      }
    }
  }
  return regions;
}

Neighbours::Neighbours(const std::vector<PlanRegion>& regions)
    : regions_(regions),
      next_(regions.size(), kNoRegion),
      before_(regions.size(), kNoRegion),
      chain_(regions.size()),
      members_(regions.size()) {
  for (std::uint32_t i = 0; i < regions.size(); ++i) {
    chain_[i] = i;
    members_[i] = {i};
  }
}

bool Neighbours::can_follow(std::uint32_t first, std::uint32_t second) const {
  if (next_[first] == second) return true;
  if (next_[first] != kNoRegion || before_[second] != kNoRegion || chain_[first] == chain_[second])
    return false;
  const PlanRegion &one = regions_[first], &other = regions_[second];
  const bool alike =
      (one.is_within_step() && other.is_within_step()) || (one.is_always() && other.is_always());
  if (one.tier != other.tier || !alike) return false;
  const auto &some = members_[chain_[first]], &more = members_[chain_[second]];
  return std::none_of(some.begin(), some.end(), [&](std::uint32_t a) {
    return std::any_of(more.begin(), more.end(),
                       [&](std::uint32_t b) { return regions_[a].tensor == regions_[b].tensor; });
  });
}

void Neighbours::follow(std::uint32_t first, std::uint32_t second) {
  if (next_[first] == second) return;
  next_[first] = second;
  before_[second] = first;
  std::uint32_t kept = chain_[first], ended = chain_[second];
  if (members_[kept].size() < members_[ended].size()) std::swap(kept, ended);
  for (const std::uint32_t region : members_[ended]) chain_[region] = kept;
  members_[kept].insert(members_[kept].end(), members_[ended].begin(), members_[ended].end());
  members_[ended].clear();
}

std::vector<std::uint32_t> Neighbours::in_order(std::uint32_t chain) const {
  check(!members_[chain].empty(), "a chain has regions");
  std::uint32_t region = members_[chain].front();
  while (before_[region] != kNoRegion) region = before_[region];
  std::vector<std::uint32_t> ordered;
  for (; region != kNoRegion; region = next_[region]) ordered.push_back(region);
  return ordered;
}

bool add_copies(const PlanRegions& regions, Neighbours& neighbours) {
  for (const CopiedRegions& copy : regions.copies) {
    for (const auto* side : {&copy.from, &copy.to}) {
      for (std::size_t i = 1; i < side->size(); ++i) {
        if (!neighbours.can_follow((*side)[i - 1], (*side)[i])) return false;
        neighbours.follow((*side)[i - 1], (*side)[i]);
      }
    }
  }
  return true;
}

}  // namespace terrace

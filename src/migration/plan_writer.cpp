// SPDX-License-Identifier: Apache-2.0
#include "migration/plan_writer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "migration/variant_choice.hpp"
#include "plan/region_size.hpp"
#include "plan/step_uses.hpp"

namespace terrace {
namespace {

/// Beyond this many regions, searching for the smallest packing takes too long.
constexpr std::size_t kMany = 8000;

/// Searches for a smaller packing only where the quick one does not fit.
Packing pack_within(std::span<const PackingItem> items, Bytes alignment, Bytes limit, PackingEffort effort) {
  // A tier far larger than needed is not used to its end.
  const Bytes least = live_bytes_bound(items, alignment);
  Packing quick = pack_in_time_order(items, alignment, std::min(limit, least + least / 8));
  if (quick.total <= limit || items.size() > kMany) return quick;
  Packing searched = pack(items, alignment, effort);
  return searched.total < quick.total ? searched : quick;
}

}  // namespace

PlanWriter::PlanWriter(const PlanRequest& request, std::string planner)
    : request_(request),
      open_(request.graph.tensors.size() * request.machine.tiers.size(), kNone),
      stays_(request.machine.tiers.size()),
      blocks_(request.machine.tiers.size()),
      group_(request.graph.tensors.size(), kAlone),
      live_(request.machine.tiers.size()) {
  plan_.planner = std::move(planner);
  plan_.graph = fingerprint(request.graph);
  plan_.machine = fingerprint(request.machine);
  plan_.profile = fingerprint(request.profile);
  plan_.budget = request.budget;
}

std::uint32_t& PlanWriter::stay_of(TensorId tensor, TierId tier) {
  return open_[tensor.index * stays_.size() + tier.index];
}

PlanWriter::Group PlanWriter::make_group(std::vector<TensorId> tensors) {
  groups_.push_back(std::move(tensors));
  open_blocks_.emplace_back(stays_.size(), kNone);
  return static_cast<Group>(groups_.size() - 1);
}

void PlanWriter::keep_together(std::span<const TensorId> tensors) {
  const Group group = make_group({tensors.begin(), tensors.end()});
  for (const TensorId tensor : tensors) {
    check(group_[tensor.index] == kAlone, "a tensor is in one group");
    check(!is_given(request_.graph[tensor]), "what is given lies alone");
    group_[tensor.index] = group;
  }
}

bool PlanWriter::has(TensorId tensor, TierId tier) const {
  return open_[tensor.index * stays_.size() + tier.index] != kNone;
}

Bytes PlanWriter::size(TensorId tensor, TierId tier) const {
  return region_size(request_.graph[tensor], request_.machine[tier]);
}

Bytes PlanWriter::block_size(TensorId tensor, TierId tier, Group group) const {
  if (group == kAlone) return size(tensor, tier);
  Bytes bytes{};
  for (const TensorId member : groups_[group]) bytes += size(member, tier);
  return bytes;
}

bool PlanWriter::block_is_open(TierId tier, Group group) const {
  return group != kAlone && open_blocks_[group][tier.index] != kNone;
}

bool PlanWriter::has_room(TensorId tensor, TierId tier) const {
  const Group group = group_[tensor.index];
  return block_is_open(tier, group) ||
         live_[tier.index] + block_size(tensor, tier, group) <= request_.budget[tier.index];
}

Result<TierId> PlanWriter::spill_tier(TensorId tensor) {
  const auto tiers = static_cast<std::uint32_t>(stays_.size());
  for (std::uint32_t i = 1; i < tiers; ++i) {
    if (has(tensor, {i}) || block_is_open({i}, group_[tensor.index])) return TierId{i};
  }
  Bytes missing{~std::uint64_t{0}};
  for (std::uint32_t i = 1; i < tiers; ++i) {
    if (!request_.machine.is_linked_both_ways({0}, {i})) continue;
    if (has_room(tensor, {i})) return TierId{i};
    const Bytes after = live_[i] + block_size(tensor, {i}, group_[tensor.index]);
    missing = std::min(missing, after - request_.budget[i]);
  }
  if (missing.count == ~std::uint64_t{0}) {
    return Error{ErrorCode::too_large, "the tensors do not fit in fast memory and there is no slower tier"};
  }
  return Error{ErrorCode::too_large, fmt::format("the slower tiers are full: {} needs {} more there",
                                                 request_.graph[tensor].name, readable(missing))};
}

/// The block of a region that is about to be made.
std::uint32_t PlanWriter::block_for(TensorId tensor, TierId tier, Group group, std::uint32_t first,
                                    bool from_start) {
  if (block_is_open(tier, group)) return open_blocks_[group][tier.index];
  const Bytes bytes = block_size(tensor, tier, group);
  const auto block = static_cast<std::uint32_t>(blocks_[tier.index].size());
  blocks_[tier.index].push_back({bytes, first, kNone, from_start, group});
  live_[tier.index] += bytes;
  if (group != kAlone) open_blocks_[group][tier.index] = block;
  return block;
}

void PlanWriter::open(TensorId tensor, TierId tier, Group group, std::uint32_t instruction,
                      std::uint32_t first) {
  check(!has(tensor, tier), "a tensor has one region in a tier");
  const std::uint32_t block = block_for(tensor, tier, group, first, instruction == kNone);
  Bytes within{};
  if (group != kAlone) {
    for (const TensorId member : groups_[group]) {
      if (member == tensor) break;
      within += size(member, tier);
    }
  }
  ++blocks_[tier.index][block].regions;
  stay_of(tensor, tier) = static_cast<std::uint32_t>(stays_[tier.index].size());
  stays_[tier.index].push_back({tensor, instruction, kNone, block, within});
}

void PlanWriter::start(TensorId tensor, TierId tier, Group group) {
  check(plan_.instructions.empty(), "the start comes before the instructions");
  open(tensor, tier, group, kNone, 0);
}

void PlanWriter::alloc(TensorId tensor, TierId tier, Group group) {
  open(tensor, tier, group, position() - 1, position());
  plan_.instructions.emplace_back(Alloc{tensor, tier, 0});
}

void PlanWriter::restore(TensorId tensor, TierId tier) {
  for (std::uint32_t i = 0; i < stays_[tier.index].size(); ++i) {
    Stay& stay = stays_[tier.index][i];
    if (stay.tensor != tensor || stay.instruction != kNone) continue;
    stay_of(tensor, tier) = i;
    stay.again = position() - 1;
    blocks_[tier.index][stay.block].restored = true;
    live_[tier.index] += size(tensor, tier);
    break;
  }
  check(has(tensor, tier), "only a region of the start is restored");
  plan_.instructions.emplace_back(Alloc{tensor, tier, 0});
}

void PlanWriter::free(TensorId tensor, TierId tier) {
  std::uint32_t& stay = stay_of(tensor, tier);
  check(stay != kNone, "what is freed exists");
  Block& block = blocks_[tier.index][stays_[tier.index][stay].block];
  stay = kNone;
  if (--block.regions == 0) {
    block.last = position();
    live_[tier.index] -= block.size;
    if (block.group != kAlone) open_blocks_[block.group][tier.index] = kNone;
  }
  plan_.instructions.emplace_back(Free{tensor, tier});
}

std::uint32_t PlanWriter::copy(std::vector<TensorId> tensors, TierId from, TierId to) {
  plan_.instructions.emplace_back(Copy{std::move(tensors), from, to, tickets_});
  return tickets_++;
}

void PlanWriter::wait(std::uint32_t ticket) { plan_.instructions.emplace_back(Wait{ticket}); }

void PlanWriter::run(KernelId kernel, TierId tier) {
  const Kernel& what = request_.graph[kernel];
  run(kernel, std::vector<TierId>(what.inputs.size() + what.outputs.size() + (what.workspace ? 1 : 0), tier));
}

void PlanWriter::run(KernelId kernel, std::vector<TierId> tiers) {
  run(kernel, std::move(tiers), fastest_variant(request_.graph, request_.profile, kernel));
}

void PlanWriter::run(KernelId kernel, std::vector<TierId> tiers, std::uint32_t variant) {
  plan_.instructions.emplace_back(Run{kernel, variant, std::move(tiers)});
}

void PlanWriter::place(TierId tier, const std::vector<std::uint64_t>& offsets) {
  for (const Stay& stay : stays_[tier.index]) {
    const std::uint64_t offset = offsets[stay.block] + stay.within.count;
    if (stay.instruction == kNone) {
      plan_.start.push_back({stay.tensor, tier, offset});
      if (stay.again != kNone) std::get<Alloc>(plan_.instructions[stay.again]).offset = offset;
    } else {
      std::get<Alloc>(plan_.instructions[stay.instruction]).offset = offset;
    }
  }
}

/// Regions that are restored at the end lie where they were, and those that outlast the step must not be
/// there. So these are taken to be there from the start: a few bytes of results.
Packing PlanWriter::pack_together(TierId tier, PackingEffort effort) const {
  std::vector<PackingItem> items;
  for (const Block& block : blocks_[tier.index]) {
    const bool ends = block.last != kNone;
    items.push_back({block.size, ends ? block.first : 0, ends ? block.last : position()});
  }
  return pack_within(items, request_.machine[tier].granularity, request_.budget[tier.index], effort);
}

/// Where nothing else is there while the step begins or ends, what is there then lies side by side at the
/// bottom, above what is always there. That takes the least possible.
std::optional<Packing> PlanWriter::pack_apart(TierId tier, PackingEffort effort) const {
  const auto& blocks = blocks_[tier.index];
  std::uint32_t begun = 0, ending = position();
  for (const Block& block : blocks) {
    if (block.restored) begun = std::max(begun, block.last);
    if (block.is_final()) ending = std::min(ending, block.first);
  }
  std::vector<PackingItem> items;
  Bytes bottom{};
  for (const Block& block : blocks) {
    if (block.always()) bottom += block.size;
    if (block.always() || block.restored || block.is_final()) continue;
    if (block.first <= begun || block.last >= ending) return std::nullopt;
    items.push_back({block.size, block.first, block.last});
  }
  const Bytes room = request_.budget[tier.index] > bottom ? request_.budget[tier.index] - bottom : Bytes{};
  const Packing rest = pack_within(items, request_.machine[tier].granularity, room, effort);
  Packing packing{{}, {}, rest.alignment};
  Bytes kept{}, edge = bottom;
  std::size_t next = 0;
  for (const Block& block : blocks) {
    if (block.restored || block.is_final()) {
      packing.offsets.push_back(edge.count);
      edge += block.size;
    } else if (block.always()) {
      packing.offsets.push_back(kept.count);
      kept += block.size;
    } else {
      packing.offsets.push_back(bottom.count + rest.offsets[next++]);
    }
  }
  packing.total = std::max(edge, bottom + rest.total);
  return packing;
}

Draft PlanWriter::finish(PackingEffort effort) {
  Draft draft;
  for (std::uint32_t tier = 0; tier < stays_.size(); ++tier) {
    const auto apart = pack_apart({tier}, effort);
    const Packing packing = apart ? *apart : pack_together({tier}, effort);
    place({tier}, packing.offsets);
    draft.needed.push_back(packing.total);
  }
  draft.plan = std::move(plan_);
  return draft;
}

}  // namespace terrace

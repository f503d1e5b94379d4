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
Packing pack_within(std::span<const PackingItem> items, const std::vector<bool>& reserved, Bytes alignment,
                    Bytes limit, PackingEffort effort) {
  // A tier far larger than needed is not used to its end.
  const Bytes least = live_bytes_bound(items, alignment);
  const Bytes wanted = std::min(limit, least + least / 8);
  if (std::find(reserved.begin(), reserved.end(), true) != reserved.end()) {
    Packing tight = pack_with_reserve(items, reserved, alignment, wanted);
    return tight.total <= limit ? tight : pack_with_reserve(items, reserved, alignment, limit);
  }
  Packing quick = pack_in_time_order(items, alignment, wanted);
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
      reserved_(request.graph.tensors.size()),
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
  const bool reserved = tier == TierId{0} && reserved_[tensor.index];
  blocks_[tier.index].push_back({bytes, first, kNone, from_start, group, reserved});
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
  stays_[tier.index].push_back({tensor, instruction, block, within});
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
  alloc(tensor, tier, kAlone);
  put_back(tensor, tier);
}

void PlanWriter::put_back(TensorId tensor, TierId tier) {
  auto& stays = stays_[tier.index];
  Stay& now = stays[stay_of(tensor, tier)];
  if (now.instruction == kNone) return;
  const auto start = std::find_if(stays.begin(), stays.end(), [&](const Stay& stay) {
    return stay.tensor == tensor && stay.instruction == kNone;
  });
  check(start != stays.end(), "only a region of the start is restored");
  Block& own = blocks_[tier.index][now.block];
  blocks_[tier.index][start->block].restored = own.first;
  own.size = {};
  now.block = start->block;
  now.within = start->within;
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
    } else {
      std::get<Alloc>(plan_.instructions[stay.instruction]).offset = offset;
    }
  }
}

/// The position from which on something is there again that was there when the step began.
std::uint32_t PlanWriter::first_restored(TierId tier) const {
  std::uint32_t first = kNone;
  for (const Block& block : blocks_[tier.index]) first = std::min(first, block.restored);
  return first;
}

/// Regions that are restored lie where they were, and those that outlast the step must not be there. So where
/// anything is restored, the latter are taken to be there from the start: a few bytes of results. Where all
/// else is gone by the time that something is restored, it meets nothing else then.
Packing PlanWriter::pack_together(TierId tier, PackingEffort effort) const {
  const auto& blocks = blocks_[tier.index];
  const std::uint32_t restored = first_restored(tier);
  const bool alone = std::none_of(blocks.begin(), blocks.end(), [&](const Block& block) {
    return block.last != kNone && block.restored == kNone && block.last >= restored;
  });
  std::vector<PackingItem> items;
  std::vector<bool> reserved;
  for (const Block& block : blocks) {
    const bool ends = block.last != kNone, comes_back = block.restored != kNone && !alone;
    items.push_back({block.size, ends || restored == kNone ? block.first : 0,
                     ends && !comes_back ? block.last : position()});
    if (comes_back) items.back().away = {block.last, block.restored};
    reserved.push_back(block.reserved);
  }
  return pack_within(items, reserved, request_.machine[tier].granularity, request_.budget[tier.index],
                     effort);
}

/// Where nothing else is there while the step begins or ends, what is there then lies side by side at the
/// bottom, above what is always there. That takes the least possible.
std::optional<Packing> PlanWriter::pack_apart(TierId tier, PackingEffort effort) const {
  const auto& blocks = blocks_[tier.index];
  std::uint32_t begun = 0, ending = std::min(position(), first_restored(tier));
  for (const Block& block : blocks) {
    if (block.restored != kNone) begun = std::max(begun, block.last);
    if (block.is_final()) ending = std::min(ending, block.first);
  }
  std::vector<PackingItem> items;
  std::vector<bool> reserved;
  Bytes bottom{};
  for (const Block& block : blocks) {
    if (block.always()) bottom += block.size;
    if (block.always() || block.restored != kNone || block.is_final()) continue;
    if (block.first <= begun || block.last >= ending) return std::nullopt;
    items.push_back({block.size, block.first, block.last});
    reserved.push_back(block.reserved);
  }
  const Bytes room = request_.budget[tier.index] > bottom ? request_.budget[tier.index] - bottom : Bytes{};
  const Packing rest = pack_within(items, reserved, request_.machine[tier].granularity, room, effort);
  Packing packing{{}, {}, rest.alignment};
  Bytes kept{}, edge = bottom;
  std::size_t next = 0;
  for (const Block& block : blocks) {
    if (block.restored != kNone || block.is_final()) {
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

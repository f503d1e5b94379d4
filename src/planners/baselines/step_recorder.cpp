// SPDX-License-Identifier: Apache-2.0
#include "planners/baselines/step_recorder.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "migration/variant_choice.hpp"
#include "plan/region_size.hpp"
#include "plan/step_uses.hpp"

namespace terrace {

StepRecorder::StepRecorder(const PlanRequest& request, std::vector<TierId> tiers, std::string planner)
    : request_(request),
      tiers_(std::move(tiers)),
      regions_(request.graph.tensors.size() * request.machine.tiers.size()),
      start_(request.graph.tensors.size()),
      result_(request.graph.tensors.size()) {
  plan_.planner = std::move(planner);
  for (const TensorId result : request.graph.results) result_[result.index] = true;
}

// ---- What the manager does

void StepRecorder::gained(ObjectId object, TierId tier, std::uint64_t offset) {
  if (object.index >= names_.size()) names_.resize(object.index + 1);
  // Evictions for a new object come before its own region, and give other objects regions elsewhere.
  Name& name = names_[object.index];
  if (name.object != object) name = {object, creating_};
  gain(name.tensor, tiers_[tier.index], offset);
}

void StepRecorder::lost(ObjectId object, TierId tier) { lose(tensor_of(object), tiers_[tier.index]); }

void StepRecorder::copying(ObjectId object, TierId from, TierId to) {
  const TensorId tensor = tensor_of(object);
  if (at(tensor, tiers_[from.index]).current) {
    copy(tensor, tiers_[from.index], tiers_[to.index]);
  } else {
    undefined_ += request_.graph[tensor].bytes;
  }
}

void StepRecorder::slid(ObjectId, TierId, std::uint64_t) {
  check(false, "a plan moves nothing within a tier");
}

void StepRecorder::gain(TensorId tensor, TierId tier, std::uint64_t offset) {
  at(tensor, tier) = {true, false, offset};
  plan_.instructions.emplace_back(Alloc{tensor, tier, offset});
}

void StepRecorder::lose(TensorId tensor, TierId tier) {
  at(tensor, tier) = {};
  plan_.instructions.emplace_back(Free{tensor, tier});
}

void StepRecorder::copy(TensorId tensor, TierId from, TierId to) {
  plan_.instructions.emplace_back(Copy{{tensor}, from, to, tickets_});
  plan_.instructions.emplace_back(Wait{tickets_++});
  at(tensor, to).current = true;
}

void StepRecorder::begin() {
  plan_.instructions.clear();
  tickets_ = 0;
  undefined_ = {};
  for (std::uint32_t i = 0; i < tensor_count(); ++i) {
    for (std::uint32_t tier = 0; tier < tier_count(); ++tier) {
      RegionState& place = at({i}, {tier});
      if (!place.exists) continue;
      check(!start_[i], "a tensor has one start region");
      start_[i] = Alloc{{i}, {tier}, place.offset};
      place.current = true;
      plan_.start.push_back(*start_[i]);
    }
  }
}

void StepRecorder::run(KernelId kernel, std::vector<TierId> tiers) {
  const Kernel& what = request_.graph[kernel];
  for (std::size_t i = 0; i < what.outputs.size(); ++i) {
    const TensorId tensor = what.outputs[i].tensor;
    for (std::uint32_t tier = 0; tier < tier_count(); ++tier) at(tensor, {tier}).current = false;
    at(tensor, tiers[what.inputs.size() + i]).current = true;
  }
  const std::uint32_t variant = fastest_variant(request_.graph, request_.profile, kernel);
  plan_.instructions.emplace_back(Run{kernel, variant, std::move(tiers)});
}

// ---- The step's end

Bytes StepRecorder::size(TensorId tensor, TierId tier) const {
  return region_size(request_.graph[tensor], request_.machine[tier]);
}

/// An input is filled again before the next step, so its value is not kept unless it is a result.
bool StepRecorder::ends_at_start(TensorId tensor) const {
  return start_[tensor.index] && (!is_given(request_.graph[tensor]) || result_[tensor.index]);
}

bool StepRecorder::is_start_region(TensorId tensor, TierId tier) const {
  const std::optional<Alloc>& start = start_[tensor.index];
  return start && start->tier == tier && at(tensor, tier).exists && at(tensor, tier).offset == start->offset;
}

std::vector<TensorId> StepRecorder::astray() const {
  std::vector<TensorId> tensors;
  for (std::uint32_t i = 0; i < tensor_count(); ++i) {
    if (ends_at_start({i}) && !is_start_region({i}, start_[i]->tier)) tensors.push_back({i});
  }
  return tensors;
}

Result<void> StepRecorder::end() {
  for (std::uint32_t i = 0; i < tensor_count(); ++i) {
    if (ends_at_start({i})) return_to_start({i});
  }
  for (std::uint32_t i = 0; i < tensor_count(); ++i) leave_only_what_is_needed({i});
  if (auto cleared = clear_start_regions(); !cleared) return cleared;
  for (const Alloc& region : plan_.start) {
    if (!at(region.tensor, region.tier).exists) gain(region.tensor, region.tier, region.offset);
  }
  return {};
}

void StepRecorder::return_to_start(TensorId tensor) {
  const TierId start = start_[tensor.index]->tier;
  if (at(tensor, start).current) return;
  for (std::uint32_t tier = 0; tier < tier_count(); ++tier) {
    if (!at(tensor, {tier}).current) continue;
    copy(tensor, {tier}, start);
    brought_ += request_.graph[tensor].bytes;
    return;
  }
}

/// Returns the tier where a result is read after the step.
std::optional<TierId> StepRecorder::at_hand(TensorId tensor) const {
  if (!result_[tensor.index]) return std::nullopt;
  if (ends_at_start(tensor) && request_.machine[start_tier(tensor)].addressable) return start_tier(tensor);
  for (std::uint32_t tier = 0; tier < tier_count(); ++tier) {
    if (request_.machine.tiers[tier].addressable && at(tensor, {tier}).current) return TierId{tier};
  }
  return std::nullopt;
}

void StepRecorder::leave_only_what_is_needed(TensorId tensor) {
  const std::optional<TierId> read = at_hand(tensor);
  for (std::uint32_t tier = 0; tier < tier_count(); ++tier) {
    if (!at(tensor, {tier}).exists || is_start_region(tensor, {tier}) || read == TierId{tier}) continue;
    lose(tensor, {tier});
  }
}

// ---- Results lie where there is room, and that may be where something is given next

bool StepRecorder::is_in_the_way(TensorId result, TierId tier) const {
  if (is_start_region(result, tier)) return false;
  const std::uint64_t begin = at(result, tier).offset, end = begin + size(result, tier).count;
  return std::any_of(plan_.start.begin(), plan_.start.end(), [&](const Alloc& region) {
    return region.tier == tier && region.offset < end &&
           begin < region.offset + size(region.tensor, tier).count;
  });
}

/// Returns the lowest offset with so much room between the regions that exist or have to exist when the step
/// ends.
std::optional<std::uint64_t> StepRecorder::hole(TierId tier, Bytes wanted) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
  for (std::uint32_t i = 0; i < tensor_count(); ++i) {
    const Bytes bytes = size({i}, tier);
    if (at({i}, tier).exists) taken.emplace_back(at({i}, tier).offset, bytes.count);
    if (start_[i] && start_[i]->tier == tier) taken.emplace_back(start_[i]->offset, bytes.count);
  }
  std::sort(taken.begin(), taken.end());
  std::uint64_t free_from = 0;
  for (const auto& [offset, bytes] : taken) {
    if (offset >= free_from + wanted.count) break;
    free_from = std::max(free_from, offset + bytes);
  }
  if (free_from + wanted.count > request_.budget[tier.index].count) return std::nullopt;
  return free_from;
}

/// Returns whether there was room.
bool StepRecorder::carry(TensorId tensor, TierId from, TierId to) {
  const auto offset = hole(to, size(tensor, to));
  if (!offset) return false;
  gain(tensor, to, *offset);
  copy(tensor, from, to);
  lose(tensor, from);
  cleared_ += request_.graph[tensor].bytes;
  return true;
}

/// All results that are in the way of start regions leave before one of them is brought back, for together
/// they may need the room that each leaves. Where the other results leave too little room, they leave as
/// well.
Result<void> StepRecorder::clear_start_regions() {
  std::vector<Away> away;
  for (const bool all : {false, true}) {
    for (std::uint32_t i = 0; i < tensor_count(); ++i) {
      const auto from = at_hand({i});
      if (!from || is_start_region({i}, *from) || (!all && !is_in_the_way({i}, *from))) continue;
      if (!send_away({i}, *from, away))
        return Error{ErrorCode::tier_full, "the step's results have nowhere to go: give slower tiers more"};
    }
    std::erase_if(away, [&](const Away& result) { return make_readable(result); });
    if (away.empty()) return {};
  }
  return Error{ErrorCode::tier_full,
               "the step's results have no room beside what is given: give fast memory more"};
}

bool StepRecorder::send_away(TensorId result, TierId from, std::vector<Away>& away) {
  for (const TierId to : tiers_) {
    if (to == from || at(result, to).exists || !carry(result, from, to)) continue;
    if (!request_.machine[to].addressable) away.push_back({result, to});
    return true;
  }
  return false;
}

bool StepRecorder::make_readable(const Away& away) {
  return std::any_of(tiers_.begin(), tiers_.end(), [&](TierId to) {
    return request_.machine[to].addressable && carry(away.result, away.tier, to);
  });
}

Draft StepRecorder::finish() && {
  plan_.graph = fingerprint(request_.graph);
  plan_.machine = fingerprint(request_.machine);
  plan_.profile = fingerprint(request_.profile);
  Draft draft{std::move(plan_), std::vector<Bytes>(tier_count())};
  const auto reach = [&](const Alloc& alloc) {
    Bytes& needed = draft.needed[alloc.tier.index];
    needed = std::max(needed, Bytes{alloc.offset} + size(alloc.tensor, alloc.tier));
  };
  for (const Alloc& region : draft.plan.start) reach(region);
  for (const Instruction& instruction : draft.plan.instructions) {
    if (const auto* alloc = std::get_if<Alloc>(&instruction)) reach(*alloc);
  }
  return draft;
}

}  // namespace terrace

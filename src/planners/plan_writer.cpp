#include "planners/plan_writer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"

namespace terrace {
namespace {

/// Beyond this many regions, searching for the smallest packing takes too long.
constexpr std::size_t kMany = 3000;

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

bool PlanWriter::has(TensorId tensor, TierId tier) const {
  return open_[tensor.index * stays_.size() + tier.index] != kNone;
}

Bytes PlanWriter::size(TensorId tensor, TierId tier) const {
  return round_up(request_.graph[tensor].bytes, request_.machine[tier].granularity);
}

Result<TierId> PlanWriter::spill_tier(TensorId tensor) {
  const auto tiers = static_cast<std::uint32_t>(stays_.size());
  for (std::uint32_t i = 1; i < tiers; ++i) {
    if (has(tensor, {i})) return TierId{i};
  }
  Bytes missing{~std::uint64_t{0}};
  for (std::uint32_t i = 1; i < tiers; ++i) {
    const Machine& machine = request_.machine;
    if (machine.link({0}, {i}) == nullptr || machine.link({i}, {0}) == nullptr) continue;
    const Bytes after = live_[i] + size(tensor, {i});
    if (after <= request_.budget[i]) return TierId{i};
    missing = std::min(missing, after - request_.budget[i]);
  }
  if (missing.count == ~std::uint64_t{0}) {
    return Error{ErrorCode::too_large, "the tensors do not fit in fast memory and there is no slower tier"};
  }
  return Error{ErrorCode::too_large, fmt::format("the slower tiers are full: {} needs {} more there",
                                                 request_.graph[tensor].name, readable(missing))};
}

void PlanWriter::open(TensorId tensor, TierId tier, std::uint32_t instruction, std::uint32_t first) {
  std::uint32_t& stay = stay_of(tensor, tier);
  check(stay == kNone, "a tensor has one region in a tier");
  stay = static_cast<std::uint32_t>(stays_[tier.index].size());
  stays_[tier.index].push_back({tensor, instruction, kNone, first, kNone});
  live_[tier.index] += size(tensor, tier);
}

void PlanWriter::start(TensorId tensor, TierId tier) {
  check(plan_.instructions.empty(), "the start comes before the instructions");
  open(tensor, tier, kNone, 0);
}

void PlanWriter::alloc(TensorId tensor, TierId tier) {
  open(tensor, tier, position() - 1, position());
  plan_.instructions.emplace_back(Alloc{tensor, tier, 0});
}

void PlanWriter::restore(TensorId tensor, TierId tier) {
  for (std::uint32_t i = 0; i < stays_[tier.index].size(); ++i) {
    Stay& stay = stays_[tier.index][i];
    if (stay.tensor != tensor || stay.instruction != kNone) continue;
    stay_of(tensor, tier) = i;
    stay.again = position() - 1;
    live_[tier.index] += size(tensor, tier);
    break;
  }
  check(has(tensor, tier), "only a region of the start is restored");
  plan_.instructions.emplace_back(Alloc{tensor, tier, 0});
}

void PlanWriter::free(TensorId tensor, TierId tier) {
  std::uint32_t& stay = stay_of(tensor, tier);
  check(stay != kNone, "what is freed exists");
  stays_[tier.index][stay].last = position();
  stay = kNone;
  live_[tier.index] -= size(tensor, tier);
  plan_.instructions.emplace_back(Free{tensor, tier});
}

std::uint32_t PlanWriter::copy(TensorId tensor, TierId from, TierId to) {
  plan_.instructions.emplace_back(Copy{{tensor}, from, to, tickets_});
  return tickets_++;
}

void PlanWriter::wait(std::uint32_t ticket) { plan_.instructions.emplace_back(Wait{ticket}); }

void PlanWriter::run(KernelId kernel, TierId tier) {
  const Kernel& what = request_.graph[kernel];
  run(kernel, std::vector<TierId>(what.inputs.size() + what.outputs.size() + (what.workspace ? 1 : 0), tier));
}

void PlanWriter::run(KernelId kernel, std::vector<TierId> tiers, std::uint32_t variant) {
  plan_.instructions.emplace_back(Run{kernel, variant, std::move(tiers)});
}

void PlanWriter::place(TierId tier, const std::vector<std::uint64_t>& offsets) {
  const auto& stays = stays_[tier.index];
  for (std::size_t i = 0; i < stays.size(); ++i) {
    const std::uint64_t offset = offsets[i];
    if (stays[i].instruction == kNone) {
      plan_.start.push_back({stays[i].tensor, tier, offset});
      if (stays[i].again != kNone) std::get<Alloc>(plan_.instructions[stays[i].again]).offset = offset;
    } else {
      std::get<Alloc>(plan_.instructions[stays[i].instruction]).offset = offset;
    }
  }
}

/// Regions that are restored at the end lie where they were, and those that outlast the step must not be
/// there. So these are taken to be there from the start: a few bytes of results.
Packing PlanWriter::pack_together(TierId tier, PackingEffort effort) const {
  std::vector<PackingItem> items;
  for (const Stay& stay : stays_[tier.index]) {
    const bool ends = stay.last != kNone;
    items.push_back({size(stay.tensor, tier), ends ? stay.first : 0, ends ? stay.last : position()});
  }
  return pack_within(items, request_.machine[tier].granularity, request_.budget[tier.index], effort);
}

/// Where nothing else is there while the step begins or ends, what is there then lies side by side at the
/// bottom, above what is always there. That takes the least possible.
std::optional<Packing> PlanWriter::pack_apart(TierId tier, PackingEffort effort) const {
  const auto& stays = stays_[tier.index];
  std::uint32_t begun = 0, ending = position();
  const auto always = [](const Stay& stay) { return stay.instruction == kNone && stay.last == kNone; };
  const auto restored = [](const Stay& stay) { return stay.again != kNone; };
  const auto final = [](const Stay& stay) { return stay.instruction != kNone && stay.last == kNone; };
  for (const Stay& stay : stays) {
    if (restored(stay)) begun = std::max(begun, stay.last);
    if (final(stay)) ending = std::min(ending, stay.first);
  }
  std::vector<PackingItem> items;
  for (const Stay& stay : stays) {
    if (always(stay) || restored(stay) || final(stay)) continue;
    if (stay.first <= begun || stay.last >= ending) return std::nullopt;
    items.push_back({size(stay.tensor, tier), stay.first, stay.last});
  }
  Bytes bottom{};
  for (const Stay& stay : stays) {
    if (always(stay)) bottom += size(stay.tensor, tier);
  }
  const Bytes room = request_.budget[tier.index] > bottom ? request_.budget[tier.index] - bottom : Bytes{};
  const Packing rest = pack_within(items, request_.machine[tier].granularity, room, effort);
  Packing packing{{}, {}, rest.alignment};
  Bytes kept{}, edge = bottom;
  std::size_t next = 0;
  for (const Stay& stay : stays) {
    if (restored(stay) || final(stay)) {
      packing.offsets.push_back(edge.count);
      edge += size(stay.tensor, tier);
    } else if (always(stay)) {
      packing.offsets.push_back(kept.count);
      kept += size(stay.tensor, tier);
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

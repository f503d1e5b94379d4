#include "planners/plan_writer.hpp"

#include <fmt/format.h>

#include "base/check.hpp"

namespace terrace {

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

void PlanWriter::run(KernelId kernel, std::vector<TierId> tiers) {
  plan_.instructions.emplace_back(Run{kernel, 0, std::move(tiers)});
}

void PlanWriter::place(TierId tier, const Packing& packing) {
  const auto& stays = stays_[tier.index];
  for (std::size_t i = 0; i < stays.size(); ++i) {
    const std::uint64_t offset = packing.offsets[i];
    if (stays[i].instruction == kNone) {
      plan_.start.push_back({stays[i].tensor, tier, offset});
      if (stays[i].again != kNone) std::get<Alloc>(plan_.instructions[stays[i].again]).offset = offset;
    } else {
      std::get<Alloc>(plan_.instructions[stays[i].instruction]).offset = offset;
    }
  }
}

Draft PlanWriter::finish(PackingEffort effort) {
  Draft draft;
  for (std::uint32_t tier = 0; tier < stays_.size(); ++tier) {
    std::vector<PackingItem> items;
    for (const Stay& stay : stays_[tier]) {
      const bool ends = stay.last != kNone;
      // A region that ends the step meets nothing that was restored at the end, wherever that lies.
      items.push_back({size(stay.tensor, {tier}), ends ? stay.first : 0, ends ? stay.last : position()});
    }
    const Packing packing = pack(items, request_.machine.tiers[tier].granularity, effort);
    place({tier}, packing);
    draft.needed.push_back(packing.total);
  }
  draft.plan = std::move(plan_);
  return draft;
}

}  // namespace terrace

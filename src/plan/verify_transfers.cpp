#include "graph/tokens.hpp"
#include "plan/verify_state.hpp"

#include <fmt/format.h>

namespace terrace {

std::string value_text(ValueNumber value) {
  if (value == kUndefined) return "nothing defined";
  if (value == 0) return "the value from before the step";
  return fmt::format("the value of write {}", value);
}

Verification::Verification(const Graph& graph, const Machine& machine, const Plan& plan, std::size_t limit)
    : graph_(graph),
      machine_(machine),
      plan_(plan),
      limit_(limit),
      values_(graph),
      regions_(graph, machine),
      linked_(machine.tiers.size() * machine.tiers.size()),
      has_run_(graph.kernels.size()),
      is_result_(graph.tensors.size()) {
  for (const Link& link : machine.links)
    linked_[link.from.index * machine.tiers.size() + link.to.index] = true;
  for (const TensorId result : graph.results) is_result_[result.index] = true;
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (is_token(graph.tensors[i])) tokens_[i];
  }
  for (std::uint32_t k = 0; k < graph.kernels.size() && !tokens_.empty(); ++k) {
    for (const auto* operands : {&graph.kernels[k].inputs, &graph.kernels[k].outputs}) {
      for (const Operand& operand : *operands) {
        const auto token = tokens_.find(operand.tensor.index);
        if (token == tokens_.end()) continue;
        auto& users = token->second.kernels;
        if (users.empty() || users.back() != KernelId{k}) users.push_back({k});
      }
    }
  }
}

std::vector<Violation> Verification::run() {
  if (!budget_fits()) return std::move(violations_);
  begin();
  moment_ = Moment::instruction;
  for (; position_ < plan_.instructions.size() && !full(); ++position_) {
    std::visit(*this, plan_.instructions[position_]);
  }
  moment_ = Moment::end;
  if (!full()) end();
  return std::move(violations_);
}

void Verification::report(std::string reason) {
  if (!full()) violations_.push_back({position_, std::move(reason), moment_});
}

bool Verification::known(TensorId tensor) {
  if (tensor.index < graph_.tensors.size()) return true;
  report(fmt::format("it names tensor {}, but the graph has {}", tensor.index, graph_.tensors.size()));
  return false;
}

bool Verification::known(TierId tier) {
  if (tier.index < machine_.tiers.size()) return true;
  report(fmt::format("it names tier {}, but the machine has {}", tier.index, machine_.tiers.size()));
  return false;
}

/// Makes a region where it may lie, and where it may not, too: what follows speaks of it.
void Verification::place(const Alloc& region) {
  const MachineTier& tier = machine_[region.tier];
  const std::uint64_t bytes = round_up(graph_[region.tensor].bytes, tier.granularity).count;
  const std::uint64_t budget = plan_.budget[region.tier.index].count;
  const auto where = [&] {
    return fmt::format("{} at offset {} of {}", name(region.tensor), region.offset, tier.name);
  };
  if (region.offset % tier.granularity.count != 0)
    report(fmt::format("{} does not lie on the granularity of {}", where(), to_string(tier.granularity)));
  const bool inside = region.offset <= budget && bytes <= budget - region.offset;
  if (!inside) report(fmt::format("{} with {} bytes ends beyond the budget of {}", where(), bytes, budget));
  const auto other = inside ? regions_.overlapping(region.tier, region.offset, bytes) : std::nullopt;
  if (other) {
    const AbstractRegion& there = regions_.at(*other, region.tier);
    report(fmt::format("{} with {} bytes overlaps {}, which has {} bytes at offset {}", where(), bytes,
                       name(*other), there.bytes, there.offset));
  }
  regions_.create(region.tensor, region.tier, region.offset, bytes, inside && !other);
}

void Verification::operator()(const Alloc& alloc) {
  if (!known(alloc.tensor) || !known(alloc.tier)) return;
  const AbstractRegion& region = regions_.at(alloc.tensor, alloc.tier);
  if (region.exists) {
    return report(fmt::format("{} already has a region in {}, at offset {}", name(alloc.tensor),
                              name(alloc.tier), region.offset));
  }
  place(alloc);
}

void Verification::operator()(const Free& free) {
  if (!known(free.tensor) || !known(free.tier)) return;
  const AbstractRegion& region = regions_.at(free.tensor, free.tier);
  const auto what = [&] { return fmt::format("the region of {} in {}", name(free.tensor), name(free.tier)); };
  if (!region.exists) return report(fmt::format("there is no {}", what().substr(4)));
  if (region.arriving) report(fmt::format("{} is freed while a transfer fills it", what()));
  if (region.readers > 0) report(fmt::format("{} is freed while a transfer reads it", what()));
  regions_.remove(free.tensor, free.tier);
}

void Verification::operator()(const Copy& copy) {
  if (!known(copy.from) || !known(copy.to)) return;
  if (!tickets_.emplace(copy.ticket, transfers_.size()).second)
    return report(fmt::format("ticket #{} is used a second time", copy.ticket));
  transfers_.push_back({copy.ticket});
  if (copy.from == copy.to) return report(fmt::format("it copies within {}", name(copy.from)));
  if (!is_linked(copy.from, copy.to))
    report(fmt::format("there is no link from {} to {}", name(copy.from), name(copy.to)));
  if (copy.tensors.empty()) report("it copies no tensor");
  for (std::size_t i = 0; i < copy.tensors.size(); ++i) {
    if (!known(copy.tensors[i])) return;
    const Piece piece = start_piece(copy.tensors[i], copy);
    if (piece.from == nullptr) return;
    transfers_.back().pieces.push_back(piece);
    if (i > 0) lies_beside(copy, i);
  }
}

/// One tensor of a transfer; without regions where there are none.
Verification::Piece Verification::start_piece(TensorId tensor, const Copy& copy) {
  AbstractRegion &from = regions_.at(tensor, copy.from), &to = regions_.at(tensor, copy.to);
  for (const TierId tier : {copy.from, copy.to}) {
    if (regions_.at(tensor, tier).exists) continue;
    report(fmt::format("{} has no region in {}", name(tensor), name(tier)));
    return {};
  }
  const auto what = [&](TierId tier) {
    return fmt::format("the region of {} in {}", name(tensor), name(tier));
  };
  if (from.arriving) {
    report(fmt::format("{} is copied while a transfer fills it", what(copy.from)));
  } else if (from.holds == kUndefined) {
    report(fmt::format("{} is copied, but holds nothing defined", what(copy.from)));
  }
  if (to.arriving) report(fmt::format("{} is copied to while another transfer fills it", what(copy.to)));
  if (to.readers > 0) report(fmt::format("{} is copied to while a transfer reads it", what(copy.to)));
  ++from.readers;
  to.arriving = true;
  to.holds = kUndefined;
  return {&from, &to, from.generation, to.generation, from.holds};
}

/// Whether the tensor follows the one before it in both tiers. pre: both have regions in both
void Verification::lies_beside(const Copy& copy, std::size_t index) {
  for (const TierId tier : {copy.from, copy.to}) {
    const AbstractRegion& before = regions_.at(copy.tensors[index - 1], tier);
    const AbstractRegion& after = regions_.at(copy.tensors[index], tier);
    if (before.offset + before.bytes == after.offset) continue;
    report(fmt::format("{} ends at {} of {} and {} begins at {}: tensors of one copy lie side by side",
                       name(copy.tensors[index - 1]), before.offset + before.bytes, name(tier),
                       name(copy.tensors[index]), after.offset));
  }
}

void Verification::operator()(const Wait& wait) {
  const auto found = tickets_.find(wait.ticket);
  if (found == tickets_.end()) return report(fmt::format("no transfer has ticket #{}", wait.ticket));
  Transfer& transfer = transfers_[found->second];
  if (transfer.waited) return report(fmt::format("ticket #{} was waited for before", wait.ticket));
  transfer.waited = true;
  for (const Piece& piece : transfer.pieces) {
    if (piece.from->exists && piece.from->generation == piece.from_generation) --piece.from->readers;
    if (!piece.to->exists || piece.to->generation != piece.to_generation) continue;
    piece.to->arriving = false;
    piece.to->holds = piece.value;
  }
}

}  // namespace terrace

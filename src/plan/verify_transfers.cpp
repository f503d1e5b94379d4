// SPDX-License-Identifier: Apache-2.0
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
      clocks_(machine),
      regions_(graph, machine, clocks_.lanes()),
      linked_(machine.tiers.size() * machine.tiers.size()),
      has_run_(graph.kernels.size()),
      is_result_(graph.tensors.size()),
      issued_on_(clocks_.lanes()) {
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
  if (const auto who = filling(region, clocks_.issued()))
    report(fmt::format("{} is freed while {} it", what(), *who));
  if (const auto who = reading(free.tensor, free.tier, clocks_.issued()))
    report(fmt::format("{} is freed while {} it", what(), *who));
  regions_.remove(free.tensor, free.tier);
}

void Verification::operator()(const Copy& copy) {
  if (!known(copy.from) || !known(copy.to)) return;
  if (ticket_places_.contains(copy.ticket))
    return report(fmt::format("ticket #{} is used a second time", copy.ticket));
  issue(clocks_.lane_of(copy.from, copy.to), copy.after);
  give_ticket(copy.ticket);
  if (copy.from == copy.to) return report(fmt::format("it copies within {}", name(copy.from)));
  if (!is_linked(copy.from, copy.to))
    report(fmt::format("there is no link from {} to {}", name(copy.from), name(copy.to)));
  if (copy.tensors.empty()) report("it copies no tensor");
  for (std::size_t i = 0; i < copy.tensors.size(); ++i) {
    if (!known(copy.tensors[i]) || !carry(copy.tensors[i], copy)) return;
    if (i > 0) lies_beside(copy, i);
  }
}

/// One tensor of a transfer. Returns whether it has regions to go from and to.
bool Verification::carry(TensorId tensor, const Copy& copy) {
  const AbstractRegion &from = regions_.at(tensor, copy.from), &to = regions_.at(tensor, copy.to);
  for (const TierId tier : {copy.from, copy.to}) {
    if (regions_.at(tensor, tier).exists) continue;
    report(fmt::format("{} has no region in {}", name(tensor), name(tier)));
    return false;
  }
  const auto what = [&](TierId tier) {
    return fmt::format("the region of {} in {}", name(tensor), name(tier));
  };
  if (const auto who = filling(from, clocks_.started())) {
    report(fmt::format("{} is copied while {} it", what(copy.from), *who));
  } else if (from.holds == kUndefined) {
    report(fmt::format("{} is copied, but holds nothing defined", what(copy.from)));
  }
  if (const auto who = filling(to, clocks_.started())) {
    const std::string other = clocks_.is_engine(to.writer.lane) ? *who : "another transfer fills";
    report(fmt::format("{} is copied to while {} it", what(copy.to), other));
  }
  if (const auto who = reading(tensor, copy.to, clocks_.started()))
    report(fmt::format("{} is copied to while {} it", what(copy.to), *who));
  regions_.add_reader(tensor, copy.from, at_work_);
  regions_.set_writer(tensor, copy.to, at_work_, from.holds);
  return true;
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

}  // namespace terrace

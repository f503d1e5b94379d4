#include "exec/residence.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace {

Residence::Residence(const Graph& graph, const Machine& machine, const Plan& plan)
    : graph_(graph),
      machine_(machine),
      offsets_(graph.tensors.size() * machine.tiers.size()),
      held_(machine.tiers.size()),
      peak_(machine.tiers.size()) {
  for (const Alloc& region : plan.start) apply(region);
}

std::optional<std::uint64_t>& Residence::offset(TensorId tensor, TierId tier) {
  return offsets_[tensor.index * machine_.tiers.size() + tier.index];
}

void Residence::apply(const Instruction& instruction) {
  std::visit([this](const auto& one) { apply(one); }, instruction);
}

void Residence::apply(const Alloc& alloc) {
  offset(alloc.tensor, alloc.tier) = alloc.offset;
  Bytes& held = held_[alloc.tier.index];
  held += size(alloc.tensor, alloc.tier);
  peak_[alloc.tier.index] = std::max(peak_[alloc.tier.index], held);
}

void Residence::apply(const Free& free) {
  offset(free.tensor, free.tier).reset();
  held_[free.tier.index] -= size(free.tensor, free.tier);
}

TierAddress Residence::address(TensorId tensor, TierId tier) const {
  const auto& found = offsets_[tensor.index * machine_.tiers.size() + tier.index];
  check(found.has_value(), "the tensor has a region in that tier");
  return {tier, *found};
}

Bytes Residence::size(TensorId tensor, TierId tier) const {
  return round_up(graph_[tensor].bytes, machine_[tier].granularity);
}

std::vector<TierAddress> Residence::addresses(TensorId tensor) const {
  std::vector<TierAddress> found;
  for (std::uint32_t tier = 0; tier < machine_.tiers.size(); ++tier) {
    const auto& offset = offsets_[tensor.index * machine_.tiers.size() + tier];
    if (offset) found.push_back({{tier}, *offset});
  }
  return found;
}

}  // namespace terrace

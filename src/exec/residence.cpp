#include "exec/residence.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace terrace {

Residence::Residence(const Graph& graph, const Machine& machine, const Plan& plan)
    : graph_(graph),
      machine_(machine),
      entries_(graph.tensors.size() * machine.tiers.size()),
      held_(machine.tiers.size()),
      peak_(machine.tiers.size()) {
  for (const Alloc& region : plan.start) {
    apply(region);
    entry(region.tensor, region.tier).current = true;
  }
}

Residence::Entry& Residence::entry(TensorId tensor, TierId tier) {
  return entries_[tensor.index * machine_.tiers.size() + tier.index];
}

void Residence::apply(const Instruction& instruction) {
  std::visit([this](const auto& one) { apply(one); }, instruction);
}

void Residence::apply(const Alloc& alloc) {
  entry(alloc.tensor, alloc.tier) = {alloc.offset, true, false};
  Bytes& held = held_[alloc.tier.index];
  held += size(alloc.tensor, alloc.tier);
  peak_[alloc.tier.index] = std::max(peak_[alloc.tier.index], held);
}

void Residence::apply(const Free& free) {
  entry(free.tensor, free.tier) = {};
  held_[free.tier.index] -= size(free.tensor, free.tier);
}

void Residence::apply(const Copy& copy) {
  for (const TensorId tensor : copy.tensors) entry(tensor, copy.to).current = true;
}

void Residence::apply(const Run& run) {
  const Kernel& kernel = graph_[run.kernel];
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
    const TensorId written = kernel.outputs[i].tensor;
    const TierId here = run.tiers[kernel.inputs.size() + i];
    for (std::uint32_t tier = 0; tier < machine_.tiers.size(); ++tier)
      entry(written, {tier}).current = tier == here.index;
  }
}

Place Residence::place(TensorId tensor, TierId tier) const {
  const Entry& found = entries_[tensor.index * machine_.tiers.size() + tier.index];
  check(found.present, "the tensor has a region in that tier");
  return {tier, found.offset};
}

Bytes Residence::size(TensorId tensor, TierId tier) const {
  return round_up(graph_[tensor].bytes, machine_[tier].granularity);
}

std::vector<Place> Residence::current(TensorId tensor) const {
  std::vector<Place> places;
  for (std::uint32_t tier = 0; tier < machine_.tiers.size(); ++tier) {
    const Entry& found = entries_[tensor.index * machine_.tiers.size() + tier];
    if (found.present && found.current) places.push_back({{tier}, found.offset});
  }
  return places;
}

}  // namespace terrace

#include "terrace/machine.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/fingerprint.hpp"
#include "terrace/plan.hpp"

namespace terrace {

Seconds Link::time(Bytes size) const {
  check(!rates.empty(), "a link has a rate");
  const auto above =
      std::find_if(rates.begin(), rates.end(), [=](const SizedRate& rate) { return rate.size >= size; });
  if (above == rates.begin()) return size / above->rate;
  if (above == rates.end()) return size / rates.back().rate;
  const auto below = std::prev(above);
  const Seconds least = below->size / below->rate, most = above->size / above->rate;
  const double share = static_cast<double>((size - below->size).count) /
                       static_cast<double>((above->size - below->size).count);
  return least + (most - least) * share;
}

const Link* Machine::link(TierId from, TierId to) const {
  const auto found = std::find_if(links.begin(), links.end(),
                                  [=](const Link& link) { return link.from == from && link.to == to; });
  return found == links.end() ? nullptr : &*found;
}

std::string fingerprint(const Machine& machine) {
  Fingerprint all;
  all.add(machine.name).add(machine.compute.name).add(machine.compute.threads);
  all.add(machine.compute.flops_per_second);
  for (const MachineTier& tier : machine.tiers) {
    all.add(tier.name).add(tier.capacity).add(tier.addressable).add(tier.read).add(tier.write);
    all.add(tier.latency).add(tier.granularity).add(tier.price.value_or(-1)).add(tier.spec);
  }
  for (const Link& link : machine.links) {
    all.add(link.from.index).add(link.to.index).add(link.both_ways).add(link.compute_loss).add(link.threads);
    for (const SizedRate& rate : link.rates) all.add(rate.size).add(rate.rate);
  }
  return all.text();
}

std::string fingerprint(const Graph& graph) {
  Fingerprint all;
  for (const Tensor& tensor : graph.tensors) all.add(tensor.bytes).add(tensor.persistent).add(tensor.layout);
  for (const Kernel& kernel : graph.kernels) {
    all.add(static_cast<unsigned>(kernel.operation)).add(kernel.workspace.index).add(kernel.variants.size());
    for (const Operand& operand : kernel.inputs) all.add(operand.tensor.index);
    for (const Operand& operand : kernel.outputs) all.add(operand.tensor.index);
  }
  for (const TensorId id : graph.results) all.add(id.index);
  return all.text();
}

}  // namespace terrace

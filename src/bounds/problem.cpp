// SPDX-License-Identifier: Apache-2.0
#include "bounds/problem.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "graph/variant.hpp"

namespace terrace::bounds {
namespace {

/// An operand that takes less than this share of its kernel's time in slower memory may be there for free.
constexpr double kNegligible = 1e-3;
/// Beyond so many links not all subsets of them are looked at.
constexpr std::size_t kManyLinks = 12;

double fastest(const Link& link) {
  double rate = 0;
  for (const SizedRate& sized : link.rates) rate = std::max(rate, sized.rate.value);
  return rate;
}

/// Links from or to tier 0.
std::vector<const Link*> links_of_tier_0(const Machine& machine) {
  std::vector<const Link*> links;
  for (const Link& link : machine.links) {
    if (link.from == TierId{0} || link.to == TierId{0}) links.push_back(&link);
  }
  return links;
}

double share_with(const Machine& machine, const Link& link, const std::vector<const Link*>& busy) {
  const Link* opposite = machine.link(link.to, link.from);
  return std::find(busy.begin(), busy.end(), opposite) != busy.end() ? link.both_ways : 1;
}

/// How much less than one after the other these links may cost kernels when they are busy at once.
double relief_of(const Machine& machine, const std::vector<const Link*>& busy) {
  double left = 1, beside = 0, alone = 0;
  for (const Link* link : busy) {
    const double share = share_with(machine, *link, busy);
    left *= 1 - link->compute_loss;
    beside += share * link->compute_loss;
    alone += share * link->compute_loss / link->while_computing;
  }
  double relief = 1;
  if (beside > 0) relief = std::min(relief, (1 - left) / beside);
  if (alone > 0) relief = std::min(relief, 1 / alone);  // where no kernel runs, all of the time is lost
  return relief;
}

/// Whatever links are busy at once, kernels lose at least this share of the sum of what each alone costs.
double relief(const Machine& machine, const std::vector<const Link*>& links) {
  if (links.size() > kManyLinks) return 1 / static_cast<double>(links.size());
  double least = 1;
  for (std::uint32_t subset = 1; subset < (1U << links.size()); ++subset) {
    std::vector<const Link*> busy;
    for (std::size_t i = 0; i < links.size(); ++i) {
      if ((subset >> i & 1U) != 0) busy.push_back(links[i]);
    }
    least = std::min(least, relief_of(machine, busy));
  }
  return least;
}

std::optional<Direction> direction(const Machine& machine, bool out) {
  const auto links = links_of_tier_0(machine);
  const double less = relief(machine, links);
  double rate = 0, cost = std::numeric_limits<double>::infinity(), both = 1;
  std::size_t count = 0;
  for (const Link* link : links) {
    if ((out ? link->from : link->to) != TierId{0}) continue;
    const double slowed = links.size() > kManyLinks ? 1 : link->while_computing;
    rate += fastest(*link);
    cost = std::min(cost, less * link->compute_loss / slowed / fastest(*link));
    both = machine.link(link->to, link->from) != nullptr ? link->both_ways : 1;
    ++count;
  }
  if (count == 0) return std::nullopt;
  // One pair of links may go out while another comes in.
  if (links.size() > 2) both = 1;
  return Direction{1 / rate, cost, both};
}

std::vector<TierId> usable_slower_tiers(const Machine& machine) {
  std::vector<TierId> tiers;
  for (std::uint32_t i = 1; i < machine.tiers.size(); ++i) {
    if (machine.tiers[i].addressable) tiers.push_back({i});
  }
  return tiers;
}

/// What one tensor takes in one tier, as input, output and workspace together.
double access(const Kernel& kernel, const KernelClock& clock, KernelId id, TensorId tensor, TierId tier) {
  Seconds sum{0};
  std::size_t operand = 0;
  for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
    for (const Operand& one : *operands) {
      if (one.tensor == tensor) sum += clock.access(id, operand, tier);
      ++operand;
    }
  }
  if (kernel.workspace == tensor) sum += clock.access(id, operand, tier);
  return sum.count();
}

/// What was measured may be faster than bytes over rates: this share of these holds for all placements.
double measured_share(const KernelProfile& profile, const KernelClock& clock, KernelId id) {
  double share = 1;
  for (std::uint32_t v = 0; v < profile.variants.size(); ++v) {
    for (const PlacedTime& placed : profile.variants[v]) {
      double sum = 0;
      for (std::size_t i = 0; i < placed.tiers.size(); ++i) {
        if (placed.tiers[i].index > 0) sum += clock.access(id, i, placed.tiers[i]).count();
      }
      if (sum > 0) share = std::min(share, clock.time(id, v, placed.tiers).count() / sum);
    }
  }
  return share;
}

struct SlowSeconds {
  double seconds;
  TensorId tensor;
};

/// Those that take any time worth mentioning in slower memory.
std::vector<SlowSeconds> priced_operands(const PlanRequest& request, const KernelClock& clock, KernelId id,
                                         std::span<const Use> uses) {
  const auto tiers = usable_slower_tiers(request.machine);
  if (tiers.empty()) return {};
  // The slowest of several tiers takes at least their mean.
  const double share =
      measured_share(request.profile.kernels[id.index], clock, id) / static_cast<double>(tiers.size());
  std::vector<SlowSeconds> slow_seconds;
  for (const Use& use : uses) {
    double least = std::numeric_limits<double>::infinity();
    for (const TierId tier : tiers)
      least = std::min(least, share * access(request.graph[id], clock, id, use.tensor, tier));
    if (least > kNegligible * clock.fast(id).count()) slow_seconds.push_back({least, use.tensor});
  }
  return slow_seconds;
}

Bytes output_bytes(const Graph& graph, const Kernel& kernel) {
  Bytes bytes{};
  for (const Operand& output : kernel.outputs) bytes += graph[output.tensor].bytes;
  return bytes;
}

}  // namespace

Problem::Problem(const PlanRequest& request, const KernelClock& clock, std::uint32_t blocks)
    : capacity(static_cast<double>(request.budget[0].count)), compute(clock.fast_step().count()) {
  addressable = !usable_slower_tiers(request.machine).empty();
  const auto leaving = direction(request.machine, true), coming = direction(request.machine, false);
  linked = leaving && coming;
  if (linked) out = *leaving, in = *coming;
  const StepUses step(request.graph);
  UsesOfTensors of_tensor(request.graph.tensors.size());
  for (std::uint32_t k = 0; k < step.kernels(); ++k) add_kernel(request, clock, k, step.of(k), of_tensor);
  for (const Use& use : step.of(step.kernels())) {
    of_tensor[use.tensor.index].push_back({step.kernels(), true, false, addressable});
  }
  add_tensors(request.graph, of_tensor);
  cut_blocks(blocks);
}

void Problem::add_kernel(const PlanRequest& request, const KernelClock& clock, std::uint32_t k,
                         std::span<const Use> step, UsesOfTensors& of_tensor) {
  const Kernel& kernel = request.graph.kernels[k];
  BoundKernel made{clock.fast({k}).count(), static_cast<std::uint32_t>(operands.size()), 0};
  const auto slow_seconds = priced_operands(request, clock, {k}, step);
  const double outputs = std::max(static_cast<double>(output_bytes(request.graph, kernel).count), 1.0);
  for (const Use& use : step) {
    if (!is_needed(kernel, use.tensor)) continue;
    BoundUse one{k, use.reads, use.writes, addressable};
    const auto found = std::find_if(slow_seconds.begin(), slow_seconds.end(),
                                    [&](const SlowSeconds& slow) { return slow.tensor == use.tensor; });
    if (found != slow_seconds.end()) {
      one.operand = static_cast<std::uint32_t>(operands.size());
      operands.push_back({found->seconds, static_cast<double>(request.graph[use.tensor].bytes.count)});
    }
    // One run makes all outputs, each of which has its share of the time.
    const double share = static_cast<double>(request.graph[use.tensor].bytes.count) / outputs;
    one.recompute = share * made.fast;
    one.recompute_slow = share * std::max(made.fast, found != slow_seconds.end() ? found->seconds : 0);
    of_tensor[use.tensor.index].push_back(one);
  }
  made.operands_end = static_cast<std::uint32_t>(operands.size());
  kernels.push_back(made);
}

void Problem::add_tensors(const Graph& graph, const UsesOfTensors& of_tensor) {
  for (std::uint32_t i = 0; i < of_tensor.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (of_tensor[i].empty() || tensor.bytes.count == 0) continue;
    const auto first = static_cast<std::uint32_t>(uses.size());
    uses.insert(uses.end(), of_tensor[i].begin(), of_tensor[i].end());
    tensors.push_back({{i},
                       static_cast<double>(tensor.bytes.count),
                       tensor.persistent,
                       is_given(tensor),
                       first,
                       static_cast<std::uint32_t>(uses.size())});
  }
}

/// Cuts the kernels into so many blocks of about equal time.
void Problem::cut_blocks(std::uint32_t count) {
  double passed = 0;
  for (std::uint32_t k = 0; k < kernels.size(); ++k) {
    const double begun = static_cast<double>(block_begin.size()) - 1;
    const bool full = block_begin.size() < count && passed >= (begun + 1) * compute / count;
    if (block_begin.empty() || full) block_begin.push_back(k);
    block_of.push_back(static_cast<std::uint32_t>(block_begin.size()) - 1);
    passed += kernels[k].fast;
  }
  block_of.push_back(block_of.empty() ? 0 : block_of.back());
  block_begin.push_back(moments());
}

}  // namespace terrace::bounds

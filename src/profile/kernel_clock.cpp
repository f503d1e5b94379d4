// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/check.hpp"
#include "profile/roofline.hpp"
#include "terrace/profile.hpp"

namespace terrace {
namespace {

bool touches(const Kernel& kernel, TensorId id) {
  const auto is_it = [id](const Operand& operand) { return operand.tensor == id; };
  return std::any_of(kernel.inputs.begin(), kernel.inputs.end(), is_it) ||
         std::any_of(kernel.outputs.begin(), kernel.outputs.end(), is_it);
}

void add_accesses(std::vector<Seconds>& accesses, const Graph& graph, const Machine& machine,
                  const Kernel& kernel) {
  const Pattern pattern = pattern_of(graph, kernel);
  for (std::size_t i = 0; i < operand_count(kernel); ++i) {
    const OperandUse use = operand_use(graph, kernel, i);
    for (const MachineTier& tier : machine.tiers) accesses.push_back(access_time(tier, use, pattern));
  }
}

Seconds fastest_variant(const std::vector<std::vector<PlacedTime>>& variants, double share) {
  Seconds least = Seconds::max();
  for (const auto& measured : variants) {
    check(!measured.empty(), "the profile has every variant with all operands in tier 0");
    least = std::min(least, in_step(measured.front(), share));
  }
  return least;
}

}  // namespace

double cold_share(const Graph& graph, KernelId id) {
  const Kernel& kernel = graph[id];
  const Kernel* before = id.index > 0 ? &graph.kernels[id.index - 1] : nullptr;
  Bytes all, warm;
  for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
    for (const Operand& operand : *operands) {
      all += operand.touched;
      if (before != nullptr && touches(*before, operand.tensor)) warm += operand.touched;
    }
  }
  return all > Bytes{} ? 1 - static_cast<double>(warm.count) / static_cast<double>(all.count) : 1;
}

Seconds in_step(const PlacedTime& placed, double cold_share) {
  return placed.warm + (placed.cold - placed.warm) * cold_share;
}

KernelClock::KernelClock(const Graph& graph, const Machine& machine, const Profile& profile)
    : profile_(profile), tiers_(machine.tiers.size()), engines_(machine.engine_count()) {
  check(profile.kernels.size() == graph.kernels.size(), "the profile is of this graph");
  first_operand_.reserve(graph.kernels.size() + 1);
  first_operand_.push_back(0);
  first_placement_.push_back(0);
  for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
    const auto& variants = profile.kernels[k].variants;
    check(variants.size() == variant_count(graph.kernels[k]), "the profile has every variant");
    add_accesses(access_, graph, machine, graph.kernels[k]);
    first_operand_.push_back(first_operand_.back() + operand_count(graph.kernels[k]));
    first_variant_.push_back(first_placement_.size() - 1);
    for (const auto& measured : variants) index_placements(measured);
    cold_share_.push_back(cold_share(graph, {k}));
    fast_.push_back(fastest_variant(variants, cold_share_.back()));
    fast_step_ += fast_.back();
    for (const Engine& engine : machine.further_engines) {
      const DataType type = arithmetic_type(graph, graph.kernels[k]);
      slowdown_.push_back(machine.compute.rate(type) / engine.compute.rate(type));
    }
  }
}

// The tiers as digits of a number. One too long for its bits wraps around: find() looks at the tiers, too.
std::uint64_t KernelClock::code_of(std::span<const TierId> tiers) const {
  std::uint64_t code = 0;
  for (const TierId tier : tiers) code = code * tiers_ + tier.index;
  return code;
}

void KernelClock::index_placements(const std::vector<PlacedTime>& measured) {
  if (measured.size() > 1) {
    for (std::uint32_t i = 0; i < measured.size(); ++i)
      placements_.push_back({code_of(measured[i].tiers), i});
    std::stable_sort(placements_.begin() + static_cast<std::ptrdiff_t>(first_placement_.back()),
                     placements_.end(),
                     [](const MeasuredPlacement& a, const MeasuredPlacement& b) { return a.code < b.code; });
  }
  first_placement_.push_back(placements_.size());
}

const PlacedTime* KernelClock::find(KernelId kernel, std::uint32_t variant,
                                    std::span<const TierId> tiers) const {
  const std::size_t number = first_variant_[kernel.index] + variant;
  const MeasuredPlacement* const begin = placements_.data() + first_placement_[number];
  const MeasuredPlacement* const end = placements_.data() + first_placement_[number + 1];
  if (begin == end) return nullptr;
  const std::uint64_t code = code_of(tiers);
  const MeasuredPlacement* candidate = std::lower_bound(
      begin, end, code, [](const MeasuredPlacement& a, std::uint64_t wanted) { return a.code < wanted; });
  for (; candidate != end && candidate->code == code; ++candidate) {
    const PlacedTime& placed = profile_.kernels[kernel.index].variants[variant][candidate->entry];
    if (std::equal(placed.tiers.begin(), placed.tiers.end(), tiers.begin(), tiers.end())) return &placed;
  }
  return nullptr;
}

Seconds KernelClock::time(KernelId kernel, std::uint32_t variant, std::span<const TierId> tiers,
                          EngineId engine) const {
  const auto& variants = profile_.kernels[kernel.index].variants;
  check(variant < variants.size(), "the kernel has that variant");
  check(tiers.size() == first_operand_[kernel.index + 1] - first_operand_[kernel.index],
        "every operand of a kernel has a tier");
  const double share = cold_share_[kernel.index], slower = slowdown(kernel, engine);
  Seconds time = in_step(variants[variant].front(), share) * slower;
  if (const PlacedTime* placed = find(kernel, variant, tiers))
    return std::max(time, in_step(*placed, share) * slower);
  for (std::uint32_t tier = 1; tier < tiers_; ++tier) {
    Seconds there{0};
    for (std::size_t i = 0; i < tiers.size(); ++i) {
      if (tiers[i].index == tier) there += access(kernel, i, {tier});
    }
    time = std::max(time, there);
  }
  return time;
}

Seconds KernelClock::fastest(KernelId kernel) const {
  double least = 1;
  for (std::uint32_t engine = 1; engine < engines_; ++engine)
    least = std::min(least, slowdown(kernel, {engine}));
  return fast(kernel) * least;
}

}  // namespace terrace

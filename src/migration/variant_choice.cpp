// SPDX-License-Identifier: Apache-2.0
#include "migration/variant_choice.hpp"

#include <algorithm>
#include <optional>

#include "graph/variant.hpp"
#include "profile/roofline.hpp"
#include "terrace/bounds.hpp"

namespace terrace {
namespace {

bool has_room(const Graph& graph, const Kernel& kernel, std::uint32_t variant) {
  if (!kernel.workspace || kernel.variants.empty()) return true;
  return kernel.variants[variant].workspace <= graph[kernel.workspace].bytes;
}

/// Returns the fastest of the variants that a rule admits.
template <class Admits>
std::optional<std::uint32_t> fastest(const Graph& graph, const Profile& profile, KernelId id, Admits admits) {
  const auto& times = profile.kernels[id.index].variants;
  const double share = times.size() > 1 ? cold_share(graph, id) : 1;
  std::optional<std::uint32_t> best;
  for (std::uint32_t i = 0; i < times.size(); ++i) {
    if (!admits(i) || !has_room(graph, graph[id], i)) continue;
    if (!best || in_step(times[i].front(), share) < in_step(times[*best].front(), share)) best = i;
  }
  return best;
}

std::optional<std::uint32_t> fastest_without_workspace(const PlanRequest& asked, KernelId id) {
  return fastest(asked.graph, asked.profile, id,
                 [&](std::uint32_t i) { return runs_without_workspace(asked.graph[id], i); });
}

}  // namespace

std::uint32_t fastest_variant(const Graph& graph, const Profile& profile, KernelId kernel) {
  return fastest(graph, profile, kernel, [](std::uint32_t) { return true; }).value_or(0);
}

VariantChoice::VariantChoice(const PlanRequest& asked, Prefer prefer)
    : asked_(asked), graph_(asked.graph), profile_(asked.profile), chosen_(asked.graph.kernels.size(), kAny) {
  for (std::uint32_t k = 0; k < chosen_.size(); ++k) {
    const auto without = fastest_without_workspace(asked, {k});
    if (!without) continue;
    const std::uint32_t usual = fastest_variant(asked.graph, asked.profile, {k});
    narrow({k}, prefer == Prefer::fastest ? usual : *without);
    if (graph_[KernelId{k}].workspace)
      spare_ = std::max(spare_, asked.graph[graph_[KernelId{k}].workspace].bytes);
  }
  for (;;) {
    const LeastBudget least = least_budget(graph_, asked.machine);
    if (least.bytes <= asked.budget[0] || !least.kernel) break;
    const auto without = fastest_without_workspace(asked, least.kernel);
    if (!without || !graph_[least.kernel].workspace) break;
    narrow(least.kernel, *without);
  }
}

void VariantChoice::narrow(KernelId kernel, std::uint32_t variant) {
  chosen_[kernel.index] = variant;
  graph_[kernel] = as_variant(asked_.graph[kernel], variant);
  auto& times = profile_.kernels[kernel.index].variants;
  times = {asked_.profile.kernels[kernel.index].variants[variant]};
  for (PlacedTime& placed : times.front()) placed.tiers.resize(operand_count(graph_[kernel]));
}

PlanRequest VariantChoice::request() const {
  return {graph_,         asked_.machine, profile_,        asked_.budget, asked_.seed,
          asked_.options, asked_.stop,    asked_.progress, asked_.agents};
}

void VariantChoice::restore(Plan& plan) const {
  plan.graph = fingerprint(asked_.graph);
  plan.profile = fingerprint(asked_.profile);
  for (Instruction& instruction : plan.instructions) {
    auto* run = std::get_if<Run>(&instruction);
    if (run == nullptr || chosen_[run->kernel.index] == kAny) continue;
    run->variant = chosen_[run->kernel.index];
    // The plan names a tier for every operand of the graph, also for a workspace that this variant does not
    // need.
    run->tiers.resize(operand_count(asked_.graph[run->kernel]), TierId{0});
  }
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "plan/verify_state.hpp"

namespace terrace {

bool Verification::budget_fits() {
  if (plan_.budget.size() != machine_.tiers.size()) {
    report(fmt::format("the plan has {} budgets, but the machine has {} tiers", plan_.budget.size(),
                       machine_.tiers.size()));
    return false;
  }
  for (std::size_t i = 0; i < plan_.budget.size(); ++i) {
    const MachineTier& tier = machine_.tiers[i];
    if (plan_.budget[i] <= tier.capacity) continue;
    report(fmt::format("the budget of {} is {} bytes, above its capacity of {}", tier.name,
                       plan_.budget[i].count, tier.capacity.count));
  }
  return true;
}

// ---- The start

void Verification::begin() {
  for (const Alloc& region : plan_.start) begin_with(region);
  for (std::uint32_t i = 0; i < graph_.tensors.size() && !full(); ++i) has_its_start({i});
}

void Verification::begin_with(const Alloc& region) {
  if (!known(region.tensor) || !known(region.tier)) return;
  const Tensor& tensor = graph_[region.tensor];
  if (!tensor.persistent && tensor.kind != TensorKind::input)
    return report(fmt::format("{} has a region, but does not outlive a step", tensor.name));
  if (regions_.at(region.tensor, region.tier).exists)
    return report(fmt::format("{} has a region in {} twice", tensor.name, name(region.tier)));
  place(region);
  regions_.at(region.tensor, region.tier).holds = 0;
  start_.push_back(region);
}

void Verification::has_its_start(TensorId tensor) {
  const Tensor& it = graph_[tensor];
  const bool is_input = it.kind == TensorKind::input && !it.persistent;  // a constant is set once
  if (!is_input && !it.persistent) return;
  std::size_t regions = 0;
  for (std::uint32_t tier = 0; tier < machine_.tiers.size(); ++tier) {
    if (!regions_.at(tensor, {tier}).exists) continue;
    ++regions;
    if (is_input && !machine_.is_reached({tier}))
      report(fmt::format("the input {} starts in {}, where it cannot be filled in place", it.name,
                         name(TierId{tier})));
  }
  if (regions == 0) report(fmt::format("{} has no region, but outlives the step", it.name));
  if (is_input && regions > 1)
    report(fmt::format("the input {} has {} regions, but is filled in one", it.name, regions));
}

// ---- The end

void Verification::end() {
  for (const Ticket& ticket : tickets_) {
    if (!LaneClocks::is_over(ticket.event, clocks_.issued()))
      report(fmt::format("ticket #{} is never waited for", ticket.number));
  }
  for (std::size_t i = 0; i < has_run_.size(); ++i) {
    if (!has_run_[i]) report(fmt::format("kernel {} never runs", graph_.kernels[i].name));
  }
  std::vector<bool> starts(graph_.tensors.size() * machine_.tiers.size());
  for (const Alloc& region : start_) {
    starts[region.tensor.index * machine_.tiers.size() + region.tier.index] = true;
    ends_as_it_began(region);
  }
  for (std::uint32_t tensor = 0; tensor < graph_.tensors.size() && !full(); ++tensor) {
    if (is_result_[tensor]) {
      result_is_at_hand({tensor});
      continue;
    }
    for (std::uint32_t tier = 0; tier < machine_.tiers.size(); ++tier) {
      if (!regions_.at({tensor}, {tier}).exists || starts[tensor * machine_.tiers.size() + tier]) continue;
      report(fmt::format("{} still has a region in {}, which the start does not have", name(TensorId{tensor}),
                         name(TierId{tier})));
    }
  }
}

void Verification::ends_as_it_began(const Alloc& start) {
  const AbstractRegion& region = regions_.at(start.tensor, start.tier);
  const auto what = [&] { return fmt::format("{} in {}", name(start.tensor), name(start.tier)); };
  if (!region.exists) return report(fmt::format("{} is gone, which the next step starts with", what()));
  if (region.offset != start.offset) {
    report(fmt::format("{} is at offset {}, but the next step starts with it at {}", what(), region.offset,
                       start.offset));
  }
  const ValueNumber last = values_.last(start.tensor);
  // What still fills it was reported; inputs are filled anew.
  const bool filled = LaneClocks::is_over(region.writer, clocks_.issued());
  if (!graph_[start.tensor].persistent || !filled || region.holds == last) return;
  report(
      fmt::format("{} holds {}, but the step leaves {}", what(), value_text(region.holds), value_text(last)));
}

/// Whoever reads a result may take any of its regions.
void Verification::result_is_at_hand(TensorId tensor) {
  const ValueNumber last = values_.last(tensor);
  bool at_hand = false;
  for (std::uint32_t i = 0; i < machine_.tiers.size(); ++i) {
    const AbstractRegion& region = regions_.at(tensor, {i});
    if (!region.exists || !LaneClocks::is_over(region.writer, clocks_.issued())) continue;
    at_hand |= machine_.is_reached({i});
    if (region.holds == last) continue;
    report(fmt::format("the result {} holds {} in {}, but the step leaves {}", name(tensor),
                       value_text(region.holds), name(TierId{i}), value_text(last)));
  }
  if (!at_hand) report(fmt::format("the result {} is in no tier that can be read in place", name(tensor)));
}

}  // namespace terrace

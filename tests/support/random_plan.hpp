// Random plans for property tests of everything that takes a plan. They are correct and deliberately naive.
//
// The planner walks the kernels in order and fetches their operands to addressable tiers, at the first offset
// where they fit. It evicts regions in the way at random, writes back values that no other region holds,
// leaves transfers in flight until their regions are needed, sometimes runs a kernel twice, and restores the
// start. The last tier has room for everything: there each tensor has a fixed offset, its home. The same
// arguments give the same plan.
#pragma once

#include <map>
#include <vector>

#include "base/check.hpp"
#include "support/random_plan_state.hpp"

namespace terrace {

class RandomPlan : private RandomPlanState {
 public:
  using RandomPlanState::RandomPlanState;

  Plan run() {
    begin();
    for (now_ = 0; now_ < graph_.kernels.size(); ++now_) {
      run_kernel({now_});
      free_the_dead();
      if (chance(30)) write_back_something();
      if (chance(30)) prefetch_something();
    }
    end();
    return std::move(plan_);
  }

 private:
  /// Frees a region, after writing its value back if it is still needed.
  void evict(TensorId tensor, TierId tier) {
    if (at(tensor, tier)->current && needed(tensor, true) && !current_tier(tensor, tier)) {
      TierId to = last();
      const TierId other{static_cast<std::uint32_t>(random_.below(tiers_))};
      if (other.index != 0 && other != tier && try_alloc(tensor, other)) to = other;
      check(to != tier, "what lies at home has no reason to go");
      try_alloc(tensor, to);
      copy(tensor, tier, to);
    }
    release(tensor, tier);
  }

  void write_back_something() {
    const TierId from{static_cast<std::uint32_t>(random_.below(tiers_ - 1))};
    for (const TensorId tensor : residents(from)) {
      const bool wanted = at(tensor, from)->current && needed(tensor, false);
      const auto& home = at(tensor, last());
      if (!wanted || (home && home->current) || chance(60)) continue;
      try_alloc(tensor, last());
      copy(tensor, from, last());
      return;
    }
  }

  void prefetch_something() {
    if (now_ + 1 >= graph_.kernels.size()) return;
    for (const Operand& input : graph_.kernels[now_ + 1].inputs) {
      const auto from = current_tier(input.tensor);
      const auto& region = at(input.tensor, {0});
      if (!from || (region && region->current) || chance(40) || !try_alloc(input.tensor, {0})) continue;
      copy(input.tensor, *from, {0});
    }
  }

  void free_the_dead() {
    for (std::uint32_t i = 0; i < regions_.size(); ++i) {
      const TensorId tensor{i / tiers_};
      const TierId tier{i % tiers_};
      if (!regions_[i] || (needed(tensor, false) && regions_[i]->current) || chance(30)) continue;
      release(tensor, tier);
    }
  }

  // ---- Kernels

  void run_kernel(KernelId id) {
    const Kernel& kernel = graph_[id];
    std::map<TensorId, TierId> places;
    if (!find_places(kernel, places)) {
      for (const TensorId tensor : residents({0})) evict(tensor, {0});
      places.clear();
      for (const TensorId tensor : operands_of(kernel)) {
        check(bring(kernel, tensor, {0}), "the budget is at least the least");
        places[tensor] = {0};
      }
    }
    for (const auto& [tensor, tier] : places) settle(tensor, tier, !is_written(kernel, tensor));
    Run run{id, 0, {}};
    if (!kernel.variants.empty())
      run.variant = static_cast<std::uint32_t>(random_.below(kernel.variants.size()));
    for (const TensorId tensor : operands_of(kernel)) run.tiers.push_back(places[tensor]);
    emit(run);
    if (chance(5) && !works_in_place(kernel)) emit(run);
    for (const Operand& output : kernel.outputs) make_current(output.tensor, places[output.tensor]);
    if (kernel.workspace) at(kernel.workspace, places[kernel.workspace])->current = false;
  }

  static bool reads(const Kernel& kernel, TensorId tensor) {
    return std::any_of(kernel.inputs.begin(), kernel.inputs.end(),
                       [&](const Operand& input) { return input.tensor == tensor; });
  }
  static bool writes(const Kernel& kernel, TensorId tensor) {
    return std::any_of(kernel.outputs.begin(), kernel.outputs.end(),
                       [&](const Operand& output) { return output.tensor == tensor; });
  }
  static bool is_written(const Kernel& kernel, TensorId tensor) {
    return writes(kernel, tensor) || kernel.workspace == tensor;
  }
  static bool works_in_place(const Kernel& kernel) {
    return std::any_of(kernel.inputs.begin(), kernel.inputs.end(),
                       [&](const Operand& input) { return writes(kernel, input.tensor); });
  }

  void make_current(TensorId tensor, TierId tier) {
    for (std::uint32_t i = 0; i < tiers_; ++i) {
      if (at(tensor, {i})) at(tensor, {i})->current = TierId{i} == tier;
    }
  }

  /// Chooses an addressable tier for every operand; returns false where tier 0 is too fragmented.
  bool find_places(const Kernel& kernel, std::map<TensorId, TierId>& places) {
    for (const TensorId tensor : operands_of(kernel)) {
      if (places.count(tensor) > 0) continue;
      const TierId other{static_cast<std::uint32_t>(random_.below(tiers_))};
      if (addressable(other) && bring(kernel, tensor, other)) {
        places[tensor] = other;
        continue;
      }
      while (!bring(kernel, tensor, {0})) {
        std::vector<TensorId> victims = residents({0});
        victims.erase(std::remove_if(victims.begin(), victims.end(),
                                     [&](TensorId victim) {
                                       const auto place = places.find(victim);
                                       return place != places.end() && place->second == TierId{0};
                                     }),
                      victims.end());
        if (victims.empty()) return false;
        evict(victims[random_.below(victims.size())], {0});
      }
      places[tensor] = {0};
    }
    return true;
  }

  /// Gives the operand a region in a tier, with its value if the kernel reads it.
  bool bring(const Kernel& kernel, TensorId tensor, TierId tier) {
    if (!try_alloc(tensor, tier)) return false;
    if (!reads(kernel, tensor) || at(tensor, tier)->current) return true;
    const auto from = current_tier(tensor);
    check(from.has_value(), "what a kernel reads is somewhere");
    copy(tensor, *from, tier);
    return true;
  }

  // ---- The ends

  void begin() {
    std::vector<Bytes> free = plan_.budget;
    // Results remain beside the regions of the start.
    for (const TensorId result : results_) free[0] -= region_bytes(graph_, machine_, result, {0});
    for (const bool inputs : {true, false}) {
      for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
        const Tensor& tensor = graph_.tensors[i];
        if (tensor.persistent && !inputs) start_persistent({i}, free);
        if (tensor.kind == TensorKind::input && !tensor.persistent && inputs) start_input({i}, free);
      }
    }
    plan_.instructions.clear();
  }

  void start_input(TensorId tensor, std::vector<Bytes>& free) {
    const TierId other{static_cast<std::uint32_t>(random_.below(tiers_))};
    // Room for a result in tier 0 is reserved already.
    if (is_result(tensor)) free[0] += region_bytes(graph_, machine_, tensor, {0});
    if (other.index == 0 || !addressable(other) || !start_in(tensor, other, free)) {
      check(start_in(tensor, {0}, free), "the budget is at least the least");
    }
  }

  void start_persistent(TensorId tensor, std::vector<Bytes>& free) {
    const TierId other{static_cast<std::uint32_t>(random_.below(tiers_))};
    const bool placed = chance(40) && other != last() && start_in(tensor, other, free);
    if (!placed || chance(30)) start_in(tensor, last(), free);
  }

  bool start_in(TensorId tensor, TierId tier, std::vector<Bytes>& free) {
    const Bytes bytes = region_bytes(graph_, machine_, tensor, tier);
    if (tier != last() && bytes > free[tier.index]) return false;
    const bool has_room = try_alloc(tensor, tier);
    check(has_room, "regions of the start lie one after the other");
    if (tier != last()) free[tier.index] -= bytes;
    at(tensor, tier)->current = true;
    plan_.start.push_back({tensor, tier, at(tensor, tier)->offset});
    return true;
  }

  bool starts_at(TensorId tensor, TierId tier) {
    return std::count(plan_.start.begin(), plan_.start.end(), Alloc{tensor, tier, at(tensor, tier)->offset}) >
           0;
  }

  void end() {
    for (std::uint32_t i = 0; i + 1 < tiers_; ++i) {
      for (const TensorId tensor : residents({i})) {
        if (!starts_at(tensor, {i})) go_home(tensor, {i});
      }
    }
    for (const Alloc& region : plan_.start) {
      if (!at(region.tensor, region.tier)) alloc(region.tensor, region.tier, region.offset);
      if (needed(region.tensor, false)) make_current_in(region.tensor, region.tier);
    }
    for (const TensorId result : results_) put_at_hand(result);
    for (std::uint32_t i = 0; i < regions_.size(); ++i) {
      const TensorId tensor{i / tiers_};
      const TierId tier{i % tiers_};
      if (!regions_[i] || starts_at(tensor, tier)) continue;
      if (!is_result(tensor) || !regions_[i]->current) release(tensor, tier);
    }
    settle_all();
  }

  void go_home(TensorId tensor, TierId tier) {
    if (at(tensor, tier)->current && needed(tensor, false)) {
      try_alloc(tensor, last());
      make_current_in(tensor, last());
    }
    release(tensor, tier);
  }

  void make_current_in(TensorId tensor, TierId tier) {
    if (!at(tensor, tier)->current) copy(tensor, *current_tier(tensor), tier);
  }

  void put_at_hand(TensorId tensor) {
    for (std::uint32_t i = 0; i < tiers_; ++i) {
      if (addressable({i}) && at(tensor, {i}) && at(tensor, {i})->current) return;
    }
    check(try_alloc(tensor, {0}), "results fit beside the start");
    make_current_in(tensor, {0});
  }
};

/// Builds a plan, except for the machine's fingerprint, which the caller sets. pre: the budget is at least
/// least_random_budget(graph, machine) in every tier
inline Plan random_plan(const Graph& graph, const Machine& machine, const std::vector<Bytes>& budget,
                        std::uint64_t seed) {
  return RandomPlan(graph, machine, budget, seed).run();
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/model/instance.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "plan/region_size.hpp"
#include "plan/step_uses.hpp"
#include "planners/autotm/model/configurations.hpp"
#include "planners/autotm/model/flow.hpp"

namespace terrace::autotm {
namespace {

/// Returns the slower tier that serves a formulation best. Where tensors move, that is the first with links
/// both ways that kernels can also use in place, else the first with links, else the first that kernels can
/// use in place. Where they do not move, it is the first that kernels can use in place, else the first of
/// all. Returns tier 0 where there is none.
TierId choose_second(const Machine& machine, Formulation formulation) {
  const auto first = [&](bool in_place, bool moves) {
    for (std::uint32_t tier = 1; tier < machine.tiers.size(); ++tier) {
      if ((!in_place || machine.tiers[tier].addressable) &&
          (!moves || machine.is_linked_both_ways(kFast, {tier})))
        return TierId{tier};
    }
    return kFast;
  };
  const bool fixed = formulation == Formulation::fixed;
  if (const TierId tier = first(true, true); !fixed && tier != kFast) return tier;
  if (const TierId tier = first(fixed, !fixed); tier != kFast) return tier;
  return first(!fixed, false);
}

/// Returns the first tier after the second one that has links both ways with one of the others, or, where
/// tensors do not move, that kernels can use in place. Returns the second where there is none.
TierId choose_third(const Machine& machine, Formulation formulation, TierId second) {
  for (std::uint32_t tier = second.index + 1; tier < machine.tiers.size(); ++tier) {
    const bool serves = formulation == Formulation::fixed ? machine.tiers[tier].addressable
                                                          : machine.is_linked_both_ways(kFast, {tier}) ||
                                                                machine.is_linked_both_ways(second, {tier});
    if (serves) return {tier};
  }
  return second;
}

class InstanceMaker {
 public:
  InstanceMaker(const PlanRequest& request, Formulation formulation, std::vector<Bytes> capacities)
      : request_(request),
        graph_(request.graph),
        capacities_(std::move(capacities)),
        uses_(request.graph),
        lives_(graph_.tensors.size()),
        place_(graph_.tensors.size(), kNone) {
    instance_.formulation = formulation;
    instance_.capacity = capacities_[0];
    instance_.kernels.resize(graph_.kernels.size());
  }

  Result<Instance> make() {
    begin_lives();
    add_uses();
    choose_tiers();
    for (std::uint32_t i = 0; i < lives_.size(); ++i) {
      if (auto added = add_tensor(i); !added) return added.error();
    }
    return add_kernels();
  }

 private:
  void begin_lives() {
    std::vector<bool> result(lives_.size());
    for (const TensorId id : graph_.results) result[id.index] = true;
    for (std::uint32_t i = 0; i < lives_.size(); ++i) {
      const Tensor& tensor = graph_.tensors[i];
      TensorLife& life = lives_[i];
      life.tensor = {i};
      const bool given = is_given(tensor);
      if (tensor.persistent || (given && result[i])) {
        life.origin = TensorLife::Origin::kept;
      } else if (given) {
        life.origin = TensorLife::Origin::given;
      }
      // An input is filled in place.
      if (tensor.persistent || given) add_use(life, {0, false, false}, !given);
    }
  }

  static void add_use(TensorLife& life, TensorUse use, bool anywhere) {
    life.uses.push_back(use);
    life.anywhere.push_back(anywhere);
  }

  void add_uses() {
    const std::uint32_t end = instance_.moments() - 1;
    for (std::uint32_t k = 0; k <= uses_.kernels(); ++k) {
      for (const Use& use : uses_.of(k)) {
        TensorLife& life = lives_[use.tensor.index];
        if (use.tensor == workspace(k)) continue;
        if (k < uses_.kernels()) {
          instance_.kernels[k].operands.push_back(
              {use.tensor.index, static_cast<std::uint32_t>(life.uses.size())});
        }
        add_use(life, {k + 1, use.reads, use.writes}, false);
      }
    }
    for (TensorLife& life : lives_) {
      const bool is_result = !life.uses.empty() && life.uses.back().moment == end;
      if (life.origin == TensorLife::Origin::kept && !is_result) add_use(life, {end, true, false}, true);
    }
  }

  void choose_tiers() {
    instance_.slow = choose_second(request_.machine, instance_.formulation);
    if (instance_.slow == kFast || most_live(instance_.slow) <= capacities_[instance_.slow.index]) return;
    const TierId third = choose_third(request_.machine, instance_.formulation, instance_.slow);
    if (third == instance_.slow) return;
    instance_.between = {{instance_.slow, capacities_[instance_.slow.index]}};
    instance_.slow = third;
  }

  /// Returns the most bytes that the tier would hold if every tensor were there for life.
  Bytes most_live(TierId tier) const {
    std::vector<Bytes> change(instance_.moments() + 1);  // wraps below zero and back
    for (const TensorLife& life : lives_) {
      if (life.uses.empty()) continue;
      const Bytes size = region_size(graph_[life.tensor], request_.machine[tier]);
      const bool made = life.origin == TensorLife::Origin::made;
      change[made ? life.uses.front().moment : 0] += size;
      change[made ? life.uses.back().moment + 1 : instance_.moments()] -= size;
    }
    for (std::size_t m = 1; m < change.size(); ++m) change[m] += change[m - 1];
    return *std::max_element(change.begin(), change.end());
  }

  void add_levels(TensorLife& life) const {
    const Bytes bytes = graph_[life.tensor].bytes;
    for (const Pool& pool : instance_.pools())
      life.size = std::max(life.size, region_size(graph_[life.tensor], request_.machine[pool.tier]));
    const std::vector<TierId> tiers = instance_.tiers();
    for (const TierId tier : tiers) {
      Level& level = life.levels.emplace_back();
      level.tier = tier;
      level.usable = request_.machine[tier].addressable;
      for (const TierId other : tiers) {
        const Link* link = request_.machine.link(tier, other);
        level.to.push_back(link == nullptr ? std::nullopt : std::optional(link->time(bytes)));
      }
    }
    const std::vector<Pool> pools = instance_.pools();
    for (std::size_t i = 0; i < pools.size(); ++i) life.levels[i].fits = life.size <= pools[i].capacity;
  }

  TensorId workspace(std::uint32_t kernel) const {
    return kernel < graph_.kernels.size() ? graph_.kernels[kernel].workspace : TensorId{};
  }

  Result<void> add_tensor(std::uint32_t i) {
    if (lives_[i].uses.empty()) return {};
    add_levels(lives_[i]);
    const Bytes size = lives_[i].size;
    FlowGraph graph = flow_graph(std::move(lives_[i]), instance_.formulation, instance_.moments());
    if (graph.edges.empty()) {
      return Error{ErrorCode::too_large,
                   fmt::format("{} takes {}, has to be in fast memory, and {} is given there",
                               graph_.tensors[i].name, readable(size), readable(instance_.capacity))};
    }
    place_[i] = static_cast<std::uint32_t>(instance_.tensors.size());
    instance_.tensors.push_back(std::move(graph));
    return {};
  }

  Result<Instance> add_kernels() {
    const KernelClock clock(graph_, request_.machine, request_.profile);
    std::vector<TensorId> operands;
    for (std::uint32_t k = 0; k < instance_.kernels.size(); ++k) {
      KernelChoice& kernel = instance_.kernels[k];
      operands.clear();
      for (KernelOperand& operand : kernel.operands) {
        operands.push_back({operand.tensor});
        operand.tensor = place_[operand.tensor];
      }
      if (auto added = add_configurations(request_, clock, {k}, operands, instance_); !added)
        return added.error();
    }
    return std::move(instance_);
  }

  const PlanRequest& request_;
  const Graph& graph_;
  std::vector<Bytes> capacities_;  ///< by tier of the machine
  StepUses uses_;
  std::vector<TensorLife> lives_;     ///< by tensor of the graph
  std::vector<std::uint32_t> place_;  ///< of the instance, by tensor of the graph
  Instance instance_;
};

}  // namespace

std::vector<Pool> Instance::pools() const {
  std::vector<Pool> all{{kFast, capacity}};
  all.insert(all.end(), between.begin(), between.end());
  return all;
}

std::vector<TierId> Instance::tiers() const {
  std::vector<TierId> all;
  for (const Pool& pool : pools()) all.push_back(pool.tier);
  if (slow != kFast) all.push_back(slow);
  return all;
}

Result<Instance> make_instance(const PlanRequest& request, Formulation formulation,
                               std::vector<Bytes> capacities) {
  check(capacities.size() == request.budget.size(), "every tier has a capacity");
  for (std::size_t tier = 0; tier < capacities.size(); ++tier)
    check(capacities[tier] <= request.budget[tier], "a program plans for no more than the budget");
  return InstanceMaker(request, formulation, std::move(capacities)).make();
}

Result<Instance> make_instance(const PlanRequest& request, Formulation formulation, Bytes capacity) {
  std::vector<Bytes> capacities = request.budget;
  capacities[0] = capacity;
  return make_instance(request, formulation, std::move(capacities));
}

}  // namespace terrace::autotm

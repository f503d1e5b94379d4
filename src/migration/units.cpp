// SPDX-License-Identifier: Apache-2.0
#include "migration/units.hpp"

#include <algorithm>
#include <map>

#include "graph/operand_tensors.hpp"
#include "plan/region_size.hpp"

namespace terrace::migration {
namespace {

/// Beyond this a transfer gains nothing from being larger.
constexpr Bytes kLarge{1 << 20};

/// Which layers use a tensor: the bit string of 000 section 4.2, as the places of its ones; and whether it is
/// kept from step to step.
using Pattern = std::pair<bool, std::vector<std::uint32_t>>;

Pattern pattern_of(const StepView& view, TensorId tensor) {
  Pattern pattern{view.request.graph[tensor].persistent, {}};
  for (const KernelId user : view.lifetimes[tensor].users) {
    const std::uint32_t layer = view.lifetimes.layer_step(user);
    if (pattern.second.empty() || pattern.second.back() != layer) pattern.second.push_back(layer);
  }
  return pattern;
}

/// Sets how long each touch takes to read and write the unit's tensors in its backing tier.
void time_touches(const StepView& view, Units& units, std::uint32_t u) {
  Unit& unit = units.all[u];
  if (!unit.backing_tier) return;
  for (Touch& touch : unit.touches) {
    touch.slow = Seconds{0};
    if (touch.kernel == view.kernels()) continue;
    const Kernel& kernel = view.request.graph.kernels[touch.kernel];
    std::size_t operand = 0;
    for_each_operand_tensor(kernel, [&](TensorId tensor) {
      if (units.of[tensor.index] == u)
        touch.slow += view.clock.access({touch.kernel}, operand, *unit.backing_tier);
      ++operand;
    });
  }
}

class Grouper {
 public:
  Grouper(const StepView& view, Grouping grouping, ShortLived short_lived)
      : view_(view),
        graph_(view.request.graph),
        grouping_(grouping),
        most_(grouping == Grouping::published ? Bytes{~std::uint64_t{0}} : kLarge),
        short_lived_(short_lived) {
    const std::size_t tensors = graph_.tensors.size();
    result_.resize(tensors);
    accesses_.resize(tensors);
    for (const TensorId result : graph_.results) result_[result.index] = true;
    count_accesses();
  }

  Units run() {
    units_.of.resize(graph_.tensors.size());
    for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
      if (may_share({i})) {
        alike_[pattern_of(view_, {i})].push_back({i});
      } else {
        add({{i}});
      }
    }
    for (auto& [pattern, tensors] : alike_) add_alike(std::move(tensors));
    add_touches();
    choose_backing_tiers();
    for (std::uint32_t u = 0; u < units_.all.size(); ++u) time_touches(view_, units_, u);
    return std::move(units_);
  }

 private:
  Bytes size(TensorId tensor) const { return region_size(graph_[tensor], view_.request.machine.tiers[0]); }

  bool counts_as_short(TensorId tensor) const {
    return short_lived_ == ShortLived::apart && is_short_lived(view_, tensor);
  }

  bool may_share(TensorId tensor) const {
    if (grouping_ == Grouping::published && graph_[tensor].persistent) return false;
    return grouping_ != Grouping::off && !counts_as_short(tensor) && !result_[tensor.index] &&
           !is_given(graph_[tensor]) && graph_[tensor].kind != TensorKind::workspace &&
           size(tensor) < most_ && graph_[tensor].bytes.count > 0 && view_.lifetimes[tensor].used;
  }

  void count_accesses() {
    for (std::uint32_t k = 0; k < view_.kernels(); ++k) {
      std::size_t operand = 0;
      for_each_operand_tensor(graph_.kernels[k], [&](TensorId tensor) {
        accesses_[tensor.index] += sweeps(view_, {k}, operand++);
      });
    }
  }

  void add(std::vector<TensorId> tensors) {
    const TensorId first = tensors.front();
    const Tensor& tensor = graph_[first];
    Unit unit;
    unit.persistent = tensor.persistent;
    unit.given = is_given(tensor);
    unit.short_lived = counts_as_short(first);
    unit.fixed = (result_[first.index] && (tensor.persistent || tensor.kind == TensorKind::input)) ||
                 (tensor.persistent && view_.request.machine.tiers.size() < 2);
    double all = 0;
    for (const TensorId member : tensors) {
      units_.of[member.index] = static_cast<std::uint32_t>(units_.all.size());
      unit.size += size(member);
      all += accesses_[member.index] * static_cast<double>(size(member).count);
    }
    // Tokens take no room, so that carrying them would be for nothing.
    unit.fixed = unit.fixed || (unit.persistent && unit.size == Bytes{});
    unit.accesses = unit.size.count > 0 ? all / static_cast<double>(unit.size.count) : 0;
    unit.tensors = std::move(tensors);
    units_.all.push_back(std::move(unit));
  }

  /// Rule 2: by accesses, so that those used alike share a unit where there is more than one.
  void add_alike(std::vector<TensorId> tensors) {
    std::stable_sort(tensors.begin(), tensors.end(),
                     [&](TensorId a, TensorId b) { return accesses_[a.index] > accesses_[b.index]; });
    std::vector<TensorId> together;
    Bytes bytes{};
    for (const TensorId tensor : tensors) {
      if (bytes + size(tensor) > most_ && !together.empty()) {
        add(std::exchange(together, {}));
        bytes = {};
      }
      together.push_back(tensor);
      bytes += size(tensor);
    }
    add(std::move(together));
  }

  void add_touches() {
    for (std::uint32_t k = 0; k <= view_.kernels(); ++k) {
      for (const Use& use : view_.uses.of(k)) {
        std::vector<Touch>& touches = units_.all[units_.of[use.tensor.index]].touches;
        if (touches.empty() || touches.back().kernel != k) touches.push_back({k});
      }
    }
  }

  /// Gives the most used units the nearest slower tier; a tier takes no more units than it could hold all at
  /// once.
  void choose_backing_tiers() {
    const Machine& machine = view_.request.machine;
    std::vector<std::uint32_t> order(units_.all.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return units_.all[a].accesses > units_.all[b].accesses;
    });
    std::vector<Bytes> room = view_.request.budget;
    for (const std::uint32_t i : order) {
      Unit& unit = units_.all[i];
      for (std::uint32_t tier = 1; tier < machine.tiers.size() && !unit.backing_tier; ++tier) {
        if (!machine.is_linked_both_ways({0}, {tier})) continue;
        Bytes bytes{};
        for (const TensorId member : unit.tensors) {
          bytes += region_size(graph_[member], machine.tiers[tier]);
        }
        if (bytes > room[tier]) continue;
        if (!unit.short_lived) room[tier] -= bytes;
        unit.backing_tier = TierId{tier};
        unit.in_place = machine.tiers[tier].addressable;
      }
    }
  }

  const StepView& view_;
  const Graph& graph_;
  Grouping grouping_;
  Bytes most_;  ///< in a unit of several tensors
  ShortLived short_lived_;
  std::vector<bool> result_;
  std::vector<double> accesses_;  ///< by tensor, in sweeps
  std::map<Pattern, std::vector<TensorId>> alike_;
  Units units_;
};

}  // namespace

bool is_short_lived(const StepView& view, TensorId tensor) {
  const Tensor& what = view.request.graph[tensor];
  const Lifetime& life = view.lifetimes[tensor];
  if (what.persistent || is_given(what) || !life.used || life.layer_steps() > 1) return false;
  // A result of the last layer is kept beyond it.
  const auto& results = view.request.graph.results;
  return std::find(results.begin(), results.end(), tensor) == results.end();
}

void set_backing_tier(const StepView& view, Units& units, std::uint32_t unit, TierId tier) {
  units.all[unit].backing_tier = tier;
  units.all[unit].in_place = view.request.machine[tier].addressable;
  time_touches(view, units, unit);
}

Units make_units(const StepView& view, Grouping grouping, ShortLived short_lived) {
  return Grouper(view, grouping, short_lived).run();
}

}  // namespace terrace::migration

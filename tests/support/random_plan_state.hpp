// The state of a random plan while it is written: its instructions so far, and the regions and transfers that
// exist after them. Every method appends the instructions for what it does. The random planner
// (random_plan.hpp) decides which regions and when.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "terrace/plan.hpp"

namespace terrace {

inline Bytes region_bytes(const Graph& graph, const Machine& machine, TensorId tensor, TierId tier) {
  return round_up(graph[tensor].bytes, machine[tier].granularity);
}

inline std::vector<TensorId> operands_of(const Kernel& kernel) {
  std::vector<TensorId> operands;
  for (const Operand& input : kernel.inputs) operands.push_back(input.tensor);
  for (const Operand& output : kernel.outputs) operands.push_back(output.tensor);
  if (kernel.workspace) operands.push_back(kernel.workspace);
  return operands;
}

/// Returns the least budget of random_plan: tier 0 must hold any one kernel, and inputs beside results; the
/// last tier must hold everything; the tiers between need nothing.
inline std::vector<Bytes> least_random_budget(const Graph& graph, const Machine& machine) {
  const TierId fast{0}, last{static_cast<std::uint32_t>(machine.tiers.size() - 1)};
  const auto sum = [&](const std::set<TensorId>& tensors, TierId tier) {
    Bytes total;
    for (const TensorId tensor : tensors) total += region_bytes(graph, machine, tensor, tier);
    return total;
  };
  std::set<TensorId> all, ends(graph.results.begin(), graph.results.end());
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    all.insert({i});
    if (graph.tensors[i].kind == TensorKind::input && !graph.tensors[i].persistent) ends.insert({i});
  }
  std::vector<Bytes> budget(machine.tiers.size());
  budget[0] = sum(ends, fast);
  for (const Kernel& kernel : graph.kernels) {
    const std::vector<TensorId> operands = operands_of(kernel);
    budget[0] = std::max(budget[0], sum({operands.begin(), operands.end()}, fast));
  }
  budget[last.index] = sum(all, last);
  return budget;
}

/// Draws a budget between the least one and enough for everything in every tier.
inline std::vector<Bytes> random_budget(const Graph& graph, const Machine& machine, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<Bytes> budget = least_random_budget(graph, machine);
  const std::uint64_t all = budget.back().count;
  for (std::size_t i = 0; i + 1 < budget.size(); ++i) {
    if (random.below(3) == 0) continue;
    budget[i] += Bytes{random.below(all / 2 + 1)};
    budget[i] = round_down(budget[i], machine.tiers[i].granularity);
  }
  return budget;
}

class RandomPlanState {
 public:
  RandomPlanState(const Graph& graph, const Machine& machine, std::vector<Bytes> budget, std::uint64_t seed)
      : graph_(graph),
        machine_(machine),
        random_(seed),
        tiers_(static_cast<std::uint32_t>(machine.tiers.size())),
        last_use_(graph.tensors.size(), 0),
        regions_(graph.tensors.size() * tiers_) {
    plan_.planner = "random";
    plan_.graph = fingerprint(graph);
    plan_.budget = std::move(budget);
    for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
      for (const TensorId tensor : operands_of(graph.kernels[k])) last_use_[tensor.index] = k;
    }
    for (const TensorId result : graph.results) results_.insert(result);
    Bytes home;
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
      homes_.push_back(home.count);
      home += region_bytes(graph, machine, {i}, last());
    }
  }

 protected:
  struct Region {
    std::uint64_t offset = 0, bytes = 0;
    bool current = false;  ///< it holds the newest value, or a transfer is bringing it
  };
  struct Pending {
    std::uint32_t ticket;
    std::vector<TensorId> tensors;
    TierId from, to;
  };

  bool chance(unsigned percent) { return random_.below(100) < percent; }
  TierId last() const { return {tiers_ - 1}; }
  std::optional<Region>& at(TensorId tensor, TierId tier) {
    return regions_[tensor.index * tiers_ + tier.index];
  }
  bool addressable(TierId tier) const { return machine_[tier].addressable; }
  bool is_result(TensorId tensor) const { return results_.count(tensor) > 0; }
  void emit(Instruction instruction) { plan_.instructions.push_back(std::move(instruction)); }

  /// Returns whether its value is needed after the current kernel.
  bool needed(TensorId tensor, bool during) const {
    const Tensor& it = graph_[tensor];
    if (it.kind == TensorKind::workspace) return false;
    return it.persistent || is_result(tensor) || last_use_[tensor.index] > now_ ||
           (during && last_use_[tensor.index] == now_);
  }

  std::optional<TierId> current_tier(TensorId tensor, std::optional<TierId> except = {}) {
    std::vector<TierId> found;
    for (std::uint32_t i = 0; i < tiers_; ++i) {
      const auto& region = at(tensor, {i});
      if (region && region->current && except != TierId{i}) found.push_back({i});
    }
    if (found.empty()) return std::nullopt;
    return found[random_.below(found.size())];
  }

  // ---- Room

  /// Returns the first offset where the tensor fits; in the last tier that is its home.
  std::optional<std::uint64_t> hole(TensorId tensor, TierId tier) {
    if (tier == last()) return homes_[tensor.index];
    const std::uint64_t bytes = region_bytes(graph_, machine_, tensor, tier).count;
    std::uint64_t offset = 0;
    for (const auto& [begin, region_end] : taken(tier)) {
      if (begin >= offset + bytes) break;
      offset = std::max(offset, region_end);
    }
    if (offset + bytes > plan_.budget[tier.index].count) return std::nullopt;
    return offset;
  }

  std::map<std::uint64_t, std::uint64_t> taken(TierId tier) {
    std::map<std::uint64_t, std::uint64_t> taken;
    for (const TensorId tensor : residents(tier)) {
      const Region& region = *at(tensor, tier);
      if (region.bytes > 0) taken[region.offset] = region.offset + region.bytes;
    }
    return taken;
  }

  std::vector<TensorId> residents(TierId tier) {
    std::vector<TensorId> residents;
    for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
      if (at({i}, tier)) residents.push_back({i});
    }
    return residents;
  }

  void alloc(TensorId tensor, TierId tier, std::uint64_t offset) {
    emit(Alloc{tensor, tier, offset});
    at(tensor, tier) = Region{offset, region_bytes(graph_, machine_, tensor, tier).count, false};
  }

  bool try_alloc(TensorId tensor, TierId tier) {
    if (at(tensor, tier)) return true;
    const auto offset = hole(tensor, tier);
    if (offset) alloc(tensor, tier, *offset);
    return offset.has_value();
  }

  void release(TensorId tensor, TierId tier) {
    settle(tensor, tier);
    emit(Free{tensor, tier});
    at(tensor, tier).reset();
  }

  // ---- Transfers

  /// Waits for all transfers that use the region, or only for those that fill it.
  void settle(TensorId tensor, TierId tier, bool filling_only = false) {
    for (std::size_t i = 0; i < pending_.size();) {
      const Pending& it = pending_[i];
      const bool touches = (it.to == tier || (it.from == tier && !filling_only)) &&
                           std::count(it.tensors.begin(), it.tensors.end(), tensor) > 0;
      if (!touches) {
        ++i;
        continue;
      }
      emit(Wait{it.ticket});
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void settle_all() {
    while (!pending_.empty()) {
      const std::size_t i = random_.below(pending_.size());
      emit(Wait{pending_[i].ticket});
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// Starts a transfer and leaves it in flight. Adjacent tensors are sometimes copied with it.
  void copy(TensorId tensor, TierId from, TierId to) {
    std::vector<TensorId> tensors{tensor};
    take_part(tensor, from, to);
    for (TensorId next{tensor.index + 1}; chance(90) && comes_along(tensors.back(), next, from, to);
         ++next.index) {
      take_part(next, from, to);
      tensors.push_back(next);
    }
    emit(Copy{tensors, from, to, ticket_});
    pending_.push_back({ticket_++, tensors, from, to});
  }

  void take_part(TensorId tensor, TierId from, TierId to) {
    settle(tensor, from, true);
    settle(tensor, to);
    at(tensor, to)->current = true;
  }

  bool comes_along(TensorId before, TensorId next, TierId from, TierId to) {
    if (next.index >= graph_.tensors.size() || !at(next, from) || !at(next, from)->current) return false;
    const auto end = [&](TierId tier) { return at(before, tier)->offset + at(before, tier)->bytes; };
    if (at(next, from)->offset != end(from)) return false;
    if (to == last() && !at(next, to) && homes_[next.index] == end(to)) alloc(next, to, homes_[next.index]);
    return at(next, to) && at(next, to)->offset == end(to) && !at(next, to)->current;
  }

  const Graph& graph_;
  const Machine& machine_;
  SplitMix random_;
  const std::uint32_t tiers_;
  std::vector<std::uint32_t> last_use_;  ///< by tensor
  std::vector<std::uint64_t> homes_;     ///< offsets in the last tier, by tensor
  std::set<TensorId> results_;
  std::vector<std::optional<Region>> regions_;  ///< tensor by tensor
  std::vector<Pending> pending_;
  std::uint32_t ticket_ = 0, now_ = 0;
  Plan plan_;
};

}  // namespace terrace

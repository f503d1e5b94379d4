#include "planners/autotm/instance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/check.hpp"
#include "plan/step_uses.hpp"
#include "planners/autotm/configurations.hpp"
#include "planners/autotm/flow.hpp"

namespace terrace::autotm {
namespace {

constexpr TierId kFast{0};

bool is_linked(const Machine& machine, TierId tier) {
  return machine.link(kFast, tier) != nullptr && machine.link(tier, kFast) != nullptr;
}

/// The first slower tier that serves best: kernels can use it in place and tensors move there and back; then
/// one of both, the use in place first where nothing moves. Tier 0 where there is none.
TierId choose_slow(const Machine& machine, Formulation formulation) {
  const auto first = [&](bool in_place, bool moves) {
    for (std::uint32_t tier = 1; tier < machine.tiers.size(); ++tier) {
      if ((!in_place || machine.tiers[tier].addressable) && (!moves || is_linked(machine, {tier})))
        return TierId{tier};
    }
    return kFast;
  };
  const bool fixed = formulation == Formulation::fixed;
  if (const TierId tier = first(true, true); !fixed && tier != kFast) return tier;
  if (const TierId tier = first(fixed, !fixed); tier != kFast) return tier;
  return first(!fixed, false);
}

class InstanceMaker {
 public:
  InstanceMaker(const PlanRequest& request, Formulation formulation, Bytes capacity)
      : request_(request),
        graph_(request.graph),
        uses_(request.graph),
        lives_(graph_.tensors.size()),
        place_(graph_.tensors.size(), kNone) {
    instance_.formulation = formulation;
    instance_.slow = choose_slow(request.machine, formulation);
    instance_.capacity = capacity;
    instance_.kernels.resize(graph_.kernels.size());
  }

  Result<Instance> make() {
    begin_lives();
    add_uses();
    for (std::uint32_t i = 0; i < lives_.size(); ++i) {
      if (auto added = add_tensor(i); !added) return added.error();
    }
    return add_kernels();
  }

 private:
  bool slow_is_usable() const { return request_.machine[instance_.slow].addressable; }

  void begin_lives() {
    std::vector<bool> result(lives_.size());
    for (const TensorId id : graph_.results) result[id.index] = true;
    for (std::uint32_t i = 0; i < lives_.size(); ++i) {
      const Tensor& tensor = graph_.tensors[i];
      TensorLife& life = lives_[i];
      life.tensor = {i};
      life.size = round_up(tensor.bytes, request_.machine[kFast].granularity);
      life.fits = life.size <= instance_.capacity;
      const bool given = is_given(tensor);
      if (tensor.persistent || (given && result[i])) {
        life.origin = TensorLife::Origin::kept;
      } else if (given) {
        life.origin = TensorLife::Origin::given;
      }
      // An input is filled in place.
      if (tensor.persistent || given) add_use(life, {0, false, false}, !given || slow_is_usable());
      if (const Link* link = request_.machine.link(kFast, instance_.slow))
        life.out = link->time(tensor.bytes);
      if (const Link* link = request_.machine.link(instance_.slow, kFast)) life.in = link->time(tensor.bytes);
    }
  }

  static void add_use(TensorLife& life, TensorUse use, bool may_be_slow) {
    life.uses.push_back(use);
    life.may_be_slow.push_back(may_be_slow);
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
        add_use(life, {k + 1, use.reads, use.writes}, slow_is_usable());
      }
    }
    for (TensorLife& life : lives_) {
      const bool is_result = !life.uses.empty() && life.uses.back().moment == end;
      if (life.origin == TensorLife::Origin::kept && !is_result) add_use(life, {end, true, false}, true);
    }
  }

  TensorId workspace(std::uint32_t kernel) const {
    return kernel < graph_.kernels.size() ? graph_.kernels[kernel].workspace : TensorId{};
  }

  Result<void> add_tensor(std::uint32_t i) {
    if (lives_[i].uses.empty()) return {};
    FlowGraph graph = flow_graph(lives_[i], instance_.formulation, instance_.slow, instance_.moments());
    if (graph.edges.empty()) {
      return Error{
          ErrorCode::too_large,
          fmt::format("{} takes {}, has to be in fast memory, and {} is given there", graph_.tensors[i].name,
                      readable(lives_[i].size), readable(instance_.capacity))};
    }
    place_[i] = static_cast<std::uint32_t>(instance_.tensors.size());
    instance_.tensors.push_back(std::move(graph));
    return {};
  }

  Result<Instance> add_kernels() {
    const KernelClock clock(graph_, request_.machine, request_.profile);
    for (std::uint32_t k = 0; k < instance_.kernels.size(); ++k) {
      KernelChoice& kernel = instance_.kernels[k];
      std::vector<TensorId> operands;
      for (KernelOperand& operand : kernel.operands) {
        operands.push_back({operand.tensor});
        operand.tensor = place_[operand.tensor];
      }
      auto made = configurations(request_, clock, {k}, operands, instance_.slow, instance_.capacity);
      if (!made) return made.error();
      kernel.configurations = *std::move(made);
    }
    return std::move(instance_);
  }

  const PlanRequest& request_;
  const Graph& graph_;
  StepUses uses_;
  std::vector<TensorLife> lives_;     ///< by tensor of the graph
  std::vector<std::uint32_t> place_;  ///< of the instance, by tensor of the graph
  Instance instance_;
};

}  // namespace

Result<Instance> make_instance(const PlanRequest& request, Formulation formulation, Bytes capacity) {
  check(capacity <= request.budget[0], "a program plans for no more than the budget");
  return InstanceMaker(request, formulation, capacity).make();
}

Seconds step_time(const Instance& instance, const Solution& solution) {
  Seconds total{0};
  std::vector<Seconds> beside(instance.moments());
  for (std::size_t t = 0; t < instance.tensors.size(); ++t) {
    for (const std::uint32_t index : solution.paths[t]) {
      const Edge& edge = instance.tensors[t].edges[index];
      (edge.beside ? beside[edge.moment] : total) += edge.time;
    }
  }
  for (std::uint32_t k = 0; k < instance.kernels.size(); ++k) {
    total += std::max(instance.kernels[k].configurations[solution.configurations[k]].time, beside[k + 1]);
  }
  return total;
}

std::vector<Bytes> occupancy(const Instance& instance, const Solution& solution) {
  std::vector<Bytes> change(instance.moments() + 1);  // wraps below zero and back
  for (std::size_t t = 0; t < instance.tensors.size(); ++t) {
    for (const std::uint32_t index : solution.paths[t]) {
      const Edge& edge = instance.tensors[t].edges[index];
      if (edge.first > edge.last) continue;
      change[edge.first] += instance.tensors[t].size;
      change[edge.last + 1] -= instance.tensors[t].size;
    }
  }
  for (std::size_t m = 1; m < change.size(); ++m) change[m] += change[m - 1];
  change.pop_back();
  for (std::uint32_t k = 0; k < instance.kernels.size(); ++k) {
    change[k + 1] += instance.kernels[k].configurations[solution.configurations[k]].scratch;
  }
  return change;
}

std::vector<TierId> places(const FlowGraph& graph, const std::vector<std::uint32_t>& path) {
  std::vector<TierId> tiers(graph.uses.size());
  for (const std::uint32_t index : path) {
    if (graph.edges[index].use != kNone) tiers[graph.edges[index].use] = graph.edges[index].tier;
  }
  return tiers;
}

std::uint32_t fastest(const KernelChoice& kernel, const std::vector<std::vector<TierId>>& tiers) {
  const auto satisfied = [&](const Configuration& one) {
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      if (tiers[kernel.operands[i].tensor][kernel.operands[i].use] > one.tiers[i]) return false;
    }
    return true;
  };
  std::uint32_t best = kNone;
  for (std::uint32_t c = 0; c < kernel.configurations.size(); ++c) {
    const Configuration& one = kernel.configurations[c];
    if (!satisfied(one)) continue;
    if (best == kNone) best = c;
    const Configuration& other = kernel.configurations[best];
    if (std::tie(one.time, one.scratch) < std::tie(other.time, other.scratch)) best = c;
  }
  check(best != kNone, "a placement satisfies the configuration that asks for least");
  return best;
}

}  // namespace terrace::autotm

// SPDX-License-Identifier: Apache-2.0
#include "planners/autotm/model/write.hpp"

#include <algorithm>

#include "plan/step_uses.hpp"

namespace terrace::autotm {
namespace {

/// What may happen to a tensor between two moments; the order of the values is the order of the actions.
enum class Act {
  // After a moment:
  end_out,  ///< waits for a move out, then frees the source
  end_in,
  drop,
  discard,  ///< frees a tensor whose value is not used any more
  out,
  // Before a moment:
  in,
  begin_out,
  begin_in,
};

struct Action {
  Act act;
  std::uint32_t tensor;
  const Edge* edge = nullptr;  ///< of a move
  /// Moves from slower tiers come first: a tensor that leaves a tier makes room there for one from a faster
  /// tier.
  bool operator<(const Action& other) const {
    if (act != other.act || edge == nullptr || other.edge == nullptr) return act < other.act;
    return edge->source > other.edge->source;
  }
};

class SolutionWriter {
 public:
  SolutionWriter(const PlanRequest& request, const Instance& instance, const Solution& solution,
                 std::string planner)
      : request_(request),
        instance_(instance),
        solution_(solution),
        before_(instance.moments()),
        after_(instance.moments()),
        tickets_(instance.tensors.size()),
        tiers_(instance.tiers()),
        writer_(request, std::move(planner)) {
    for (std::uint32_t t = 0; t < instance.tensors.size(); ++t) {
      places_.push_back(places(instance.tensors[t], solution.paths[t]));
      schedule(t);
    }
    for (auto* lists : {&before_, &after_}) {
      for (auto& actions : *lists) std::stable_sort(actions.begin(), actions.end());
    }
  }

  Draft write() {
    for (std::uint32_t t = 0; t < places_.size(); ++t) {
      if (outlives_step(t)) writer_.start(id(t), places_[t].front());
    }
    for (std::uint32_t moment = 0; moment < instance_.moments(); ++moment) {
      for (const Action& action : before_[moment]) perform(action);
      if (moment > 0 && moment <= instance_.kernels.size()) run(moment - 1);
      for (const Action& action : after_[moment]) perform(action);
    }
    end();
    return writer_.finish();
  }

 private:
  TensorId id(std::uint32_t t) const { return instance_.tensors[t].tensor; }
  const Tensor& tensor(std::uint32_t t) const { return request_.graph[id(t)]; }
  bool outlives_step(std::uint32_t t) const { return tensor(t).persistent || is_given(tensor(t)); }
  /// A region with which the step begins has to exist again when the step ends.
  bool is_start_region(std::uint32_t t, TierId tier) const {
    return outlives_step(t) && tier != kFast && places_[t].front() == tier;
  }

  void schedule(std::uint32_t t) {
    const FlowGraph& graph = instance_.tensors[t];
    for (const std::uint32_t index : solution_.paths[t]) schedule(t, graph.edges[index]);
    const std::uint32_t last = graph.uses.back().moment;
    if (last + 1 < instance_.moments()) after_[last].push_back({Act::discard, t});
  }

  void schedule(std::uint32_t t, const Edge& edge) {
    switch (edge.move) {
      case Move::none:
        break;
      case Move::drop:
        after_[edge.moment].push_back({Act::drop, t, &edge});
        break;
      case Move::renew:
        after_[edge.moment].push_back({Act::discard, t});
        break;
      case Move::out:
        if (edge.beside) before_[edge.moment].push_back({Act::begin_out, t, &edge});
        after_[edge.moment].push_back({edge.beside ? Act::end_out : Act::out, t, &edge});
        break;
      case Move::in:
        before_[edge.moment].push_back({edge.beside ? Act::begin_in : Act::in, t, &edge});
        if (edge.beside) after_[edge.moment].push_back({Act::end_in, t, &edge});
        break;
    }
  }

  void perform(const Action& action) {
    const std::uint32_t t = action.tensor;
    switch (action.act) {
      case Act::end_out:
      case Act::end_in:
        end_copy(t, *action.edge);
        break;
      case Act::drop:
        writer_.free(id(t), action.edge->source);
        break;
      case Act::discard:
        discard(t);
        break;
      case Act::out:
      case Act::in:
        begin_copy(t, *action.edge);
        end_copy(t, *action.edge);
        break;
      case Act::begin_out:
      case Act::begin_in:
        begin_copy(t, *action.edge);
        break;
    }
  }

  void begin_copy(std::uint32_t t, const Edge& edge) {
    if (!writer_.has(id(t), edge.target)) writer_.alloc(id(t), edge.target);
    tickets_[t] = writer_.copy(id(t), edge.source, edge.target);
  }

  void end_copy(std::uint32_t t, const Edge& edge) {
    writer_.wait(tickets_[t]);
    if (edge.move == Move::out || edge.frees) free_if(t, edge.source);
  }

  void free_if(std::uint32_t t, TierId tier) {
    if (writer_.has(id(t), tier) && !is_start_region(t, tier)) writer_.free(id(t), tier);
  }

  void discard(std::uint32_t t) {
    for (const TierId tier : tiers_) free_if(t, tier);
  }

  void run(std::uint32_t k) {
    const Kernel& kernel = request_.graph.kernels[k];
    const KernelChoice& choice = instance_.kernels[k];
    const Configuration& configuration = choice.configurations[solution_.configurations[k]];
    for (const KernelOperand& operand : choice.operands) {
      const TierId tier = places_[operand.tensor][operand.use];
      if (!writer_.has(id(operand.tensor), tier)) writer_.alloc(id(operand.tensor), tier);
    }
    std::vector<TierId> tiers;
    for (const auto* list : {&kernel.inputs, &kernel.outputs}) {
      for (const Operand& operand : *list) tiers.push_back(place(choice, operand.tensor));
    }
    if (kernel.workspace) {
      tiers.push_back(configuration.workspace);
      writer_.alloc(kernel.workspace, configuration.workspace);
    }
    writer_.run({k}, std::move(tiers), configuration.variant);
    if (kernel.workspace) writer_.free(kernel.workspace, configuration.workspace);
    free_stale(choice);
  }

  TierId place(const KernelChoice& choice, TensorId tensor) const {
    const auto found =
        std::find_if(choice.operands.begin(), choice.operands.end(),
                     [&](const KernelOperand& operand) { return id(operand.tensor) == tensor; });
    return places_[found->tensor][found->use];
  }

  /// Frees copies in slower tiers that the kernel's writes have made stale.
  void free_stale(const KernelChoice& choice) {
    for (const KernelOperand& operand : choice.operands) {
      if (instance_.tensors[operand.tensor].uses[operand.use].writes)
        free_slower(operand.tensor, places_[operand.tensor][operand.use]);
    }
  }

  void free_slower(std::uint32_t t, TierId than) {
    for (const TierId tier : tiers_) {
      if (tier > than) free_if(t, tier);
    }
  }

  void end() {
    for (std::uint32_t t = 0; t < places_.size(); ++t) {
      if (!outlives_step(t)) free_slower(t, places_[t].back());
    }
    for (std::uint32_t t = 0; t < places_.size(); ++t) {
      const TierId start = places_[t].front();
      if (outlives_step(t) && !writer_.has(id(t), start)) writer_.restore(id(t), start);
    }
  }

  const PlanRequest& request_;
  const Instance& instance_;
  const Solution& solution_;
  std::vector<std::vector<Action>> before_, after_;  ///< by moment
  std::vector<std::vector<TierId>> places_;          ///< by tensor and use
  std::vector<std::uint32_t> tickets_;               ///< by tensor: the ticket of its last transfer
  std::vector<TierId> tiers_;                        ///< of the instance
  PlanWriter writer_;
};

}  // namespace

Draft write_solution(const PlanRequest& request, const Instance& instance, const Solution& solution,
                     std::string planner) {
  return SolutionWriter(request, instance, solution, std::move(planner)).write();
}

}  // namespace terrace::autotm

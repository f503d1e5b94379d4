// Every way to give each tensor of a very small graph one of three tiers, tried one after the other: the dumb
// oracle of static programs, of which the first two tiers have capacities.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "plan/step_uses.hpp"
#include "planners/autotm/model/instance.hpp"
#include "profile/roofline.hpp"

namespace terrace::autotm {

class StaticOracle {
 public:
  explicit StaticOracle(const PlanRequest& request)
      : request_(request), clock_(request.graph, request.machine, request.profile), uses_(request.graph) {
    for (std::uint32_t i = 0; i < request.graph.tensors.size(); ++i) {
      if (request.graph.tensors[i].kind != TensorKind::workspace) tensors_.push_back({i});
    }
    tiers_.resize(request.graph.tensors.size());
  }

  double best() {
    choose(0);
    return best_;
  }

 private:
  std::uint32_t kernels() const { return static_cast<std::uint32_t>(request_.graph.kernels.size()); }
  Bytes size(TensorId id) const { return round_up(request_.graph[id].bytes, Bytes{64}); }
  bool outlives(TensorId id) const { return request_.graph[id].persistent || is_given(request_.graph[id]); }

  std::uint32_t last_use(TensorId id) const {
    std::uint32_t last = 0;
    for (std::uint32_t k = 0; k <= kernels(); ++k) {
      for (const Use& use : uses_.of(k)) last = use.tensor == id ? k : last;
    }
    return last;
  }

  /// Whether the tensor takes memory of its tier at a moment.
  bool lives(TensorId id, std::uint32_t moment) const {
    const bool in_fast = tiers_[id.index] == TierId{0};
    const bool given = is_given(request_.graph[id]) && !request_.graph[id].persistent;
    if (uses_.first(id) == kNever)
      return outlives(id) && (!given || !in_fast || moment == 0 || moment > kernels());
    const bool is_result = last_use(id) == kernels();
    if (outlives(id) && (!given || is_result || !in_fast)) return true;
    if (outlives(id)) return moment <= last_use(id) + 1 || moment == kernels() + 1;
    return moment > uses_.first(id) && moment <= last_use(id) + 1;
  }

  void choose(std::size_t next) {
    if (next == tensors_.size()) return finish();
    for (std::uint32_t tier = 0; tier < request_.machine.tiers.size(); ++tier) {
      const bool unused = uses_.first(tensors_[next]) == kNever && !is_given(request_.graph[tensors_[next]]);
      if (!request_.machine.tiers[tier].addressable && !unused) continue;
      tiers_[tensors_[next].index] = {tier};
      choose(next + 1);
    }
  }

  void finish() {
    std::vector<std::vector<Bytes>> held(2, std::vector<Bytes>(kernels() + 2));
    for (const TensorId id : tensors_) {
      if (tiers_[id.index] == TierId{2}) continue;
      for (std::uint32_t m = 0; m < kernels() + 2; ++m) {
        if (lives(id, m)) held[tiers_[id.index].index][m] += size(id);
        if (held[tiers_[id.index].index][m] > request_.budget[tiers_[id.index].index]) return;
      }
    }
    double total = 0;
    for (std::uint32_t k = 0; k < kernels(); ++k) total += time(k, held);
    best_ = std::min(best_, total);
  }

  /// In the variant and with the workspace that do best.
  double time(std::uint32_t k, const std::vector<std::vector<Bytes>>& held) const {
    const Kernel& kernel = request_.graph.kernels[k];
    std::vector<TensorId> operands;
    std::vector<TierId> tiers;
    for (const auto* list : {&kernel.inputs, &kernel.outputs}) {
      for (const Operand& operand : *list) {
        operands.push_back(operand.tensor);
        tiers.push_back(tiers_[operand.tensor.index]);
      }
    }
    double best = std::numeric_limits<double>::infinity();
    for (std::uint32_t variant = 0; variant < variant_count(kernel); ++variant) {
      if (!kernel.workspace) {
        best = std::min(best, monotone(k, variant, operands, tiers));
        continue;
      }
      if (!kernel.variants.empty() &&
          kernel.variants[variant].workspace > request_.graph[kernel.workspace].bytes)
        continue;
      for (std::uint32_t where = 0; where < 3; ++where) {
        const bool fits = where == 2 || held[where][k + 1] + size(kernel.workspace) <= request_.budget[where];
        if (!fits || !request_.machine.tiers[where].addressable) continue;
        std::vector<TensorId> all = operands;
        std::vector<TierId> places = tiers;
        all.push_back(kernel.workspace);
        places.push_back({where});
        best = std::min(best, monotone(k, variant, all, places));
      }
    }
    return best;
  }

  /// Programs take a kernel to be no faster than with some of its operands in faster memory.
  double monotone(std::uint32_t k, std::uint32_t variant, const std::vector<TensorId>& operands,
                  const std::vector<TierId>& tiers, std::size_t from = 0) const {
    double most = clock_.time({k}, variant, tiers).count();
    for (std::size_t i = from; i < tiers.size(); ++i) {
      if (tiers[i].index == 0) continue;
      std::vector<TierId> faster = tiers;
      for (std::size_t j = 0; j < tiers.size(); ++j) {
        if (operands[j] == operands[i]) faster[j].index = tiers[i].index - 1;
      }
      most = std::max(most, monotone(k, variant, operands, faster, i));
    }
    return most;
  }

  const PlanRequest& request_;
  KernelClock clock_;
  StepUses uses_;
  std::vector<TensorId> tensors_;
  std::vector<TierId> tiers_;  ///< by tensor
  double best_ = std::numeric_limits<double>::infinity();
};

}  // namespace terrace::autotm

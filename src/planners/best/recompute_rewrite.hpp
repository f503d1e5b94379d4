// A step in which kernels run again, as a graph of its own: a tensor that is discarded has a second one,
// which second runs of its kernels make just before it is needed, and which all later uses take. Planners
// plan it as any other graph; `restore` turns such a plan into one for the graph it comes from.
//
// A kernel runs again where it can read what it read before: what is discarded, too, is made again first, in
// the graph's order, and what was written over since. Nothing runs more than twice.
//
// A kernel that changes what outlives the step, as batch normalisation does with its running statistics,
// reads the old value twice (old_values.hpp). Here its first run only reads it, and writes to nowhere.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/step_uses.hpp"
#include "planners/best/state_snapshots.hpp"

namespace terrace::best {

/// When a tensor is not kept: after the kernel `after`, until it is made again for the kernel `until`; where
/// that is kNever, only for other tensors that are made from it. With no `after` it is kept.
struct DiscardWindow {
  std::uint32_t after = kNever, until = kNever;
  bool operator==(const DiscardWindow&) const = default;
};

class RecomputeRewrite {
 public:
  /// `discarded`: by tensor. What cannot be made again is kept. Borrows the request.
  RecomputeRewrite(const PlanRequest& request, const StepUses& uses, std::vector<DiscardWindow> discarded);

  PlanRequest request() const {
    return {graph_, asked_.machine, profile_, asked_.budget, asked_.seed, asked_.options, asked_.stop};
  }
  /// The one of the graph asked for.
  KernelId kernel_of(KernelId kernel) const { return kernel_of_[kernel.index]; }
  std::size_t recomputations() const { return graph_.kernels.size() - asked_.graph.kernels.size(); }
  /// Persistent tensors that have to be in fast memory from step to step, side by side in this order.
  const std::vector<TensorId>& side_by_side() const { return snapshots_.tensors(); }
  /// The draft's plan for the graph asked for. Fails where that does not fit. pre: it is one for request()
  Result<Plan> restore(Draft draft) const;

 private:
  class Rewriting;
  bool is_nowhere(TensorId tensor) const { return !tensor_of_[tensor.index]; }
  bool restore(Instruction& instruction) const;
  void restore(Run& run) const;

  const PlanRequest& asked_;
  Graph graph_;
  Profile profile_;
  std::vector<KernelId> kernel_of_;  ///< by kernel: that of the graph asked for
  std::vector<TensorId> tensor_of_;  ///< by tensor: the same; none: it stands for nothing
  StateSnapshots snapshots_;
};

}  // namespace terrace::best

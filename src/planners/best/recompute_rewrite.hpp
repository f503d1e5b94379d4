// SPDX-License-Identifier: Apache-2.0
// A step with recomputation, rewritten as a graph of its own: a tensor that is discarded has a second one,
// which second runs of its kernels make just before it is needed, and which all later uses take. Planners
// plan it as any other graph; `restore` turns such a plan into one for the graph it comes from.
//
// A kernel can be recomputed where it can read what it read before: what was discarded is recomputed first,
// in the graph's order, and so is what was overwritten since. Of windows nothing runs more than twice;
// batches say themselves what runs, as often as they like.
//
// A kernel that changes what outlives the step, as batch normalisation does with its running statistics,
// reads the old value in every run (state_snapshots.hpp). Here all runs but the last only read it, and write
// to nowhere.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/step_uses.hpp"
#include "planners/best/state_snapshots.hpp"

namespace terrace::best {

/// When a tensor is not kept: after the kernel `after`, until it is recomputed for the kernel `until`; where
/// that is kNever, only for other tensors that are made from it. With no `after` it is kept.
struct DiscardWindow {
  std::uint32_t after = kNever, until = kNever;
  bool operator==(const DiscardWindow&) const = default;
};

/// Kernels that run again before another, and the tensors that they make anew. What these hold so far is of
/// no use from there on.
struct RecomputeBatch {
  std::uint32_t before = 0;
  std::vector<std::uint32_t> kernels;  ///< ascending
  std::vector<TensorId> tensors;
  bool operator==(const RecomputeBatch&) const = default;
};

class RecomputeRewrite {
 public:
  /// `discarded`: by tensor. What cannot be recomputed is kept. Borrows the request.
  RecomputeRewrite(const PlanRequest& request, const StepUses& uses, std::vector<DiscardWindow> discarded);
  /// `batches`: in order, each a closure (recompute_closure.hpp) of what is gone then.
  RecomputeRewrite(const PlanRequest& request, const StepUses& uses,
                   const std::vector<RecomputeBatch>& batches);

  PlanRequest request() const {
    return {graph_, asked_.machine, profile_, asked_.budget, asked_.seed, asked_.options, asked_.stop};
  }
  /// The kernel of the graph asked for that this one stands for.
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

// SPDX-License-Identifier: Apache-2.0
// Records as a plan what the improved active list (active_lists.hpp) does to one step. It sees every kernel
// when it comes and knows nothing of those after it. Every transfer is waited for at once.
//
//   current    a tensor's region in a slower tier holds the same value as the one in fast memory
//
// A tensor is in fast memory, or in its spill tier, or current in both. Kernels use it in place where they
// can; a tensor in a tier that they cannot use is brought to fast memory first.
#pragma once

#include <vector>

#include "migration/plan_writer.hpp"
#include "plan/step_uses.hpp"
#include "planners/baselines/active_lists.hpp"

namespace terrace {

class ActiveListStep {
 public:
  /// `pinned`: by tensor, which persistent ones are in fast memory from step to step.
  ActiveListStep(const PlanRequest& request, const StepUses& uses, Bytes capacity,
                 const std::vector<bool>& pinned);

  /// Returns the pinned tensors that had to leave; where there are any, the step is no plan.
  Result<std::vector<TensorId>> run();
  /// pre: run() returned no tensor
  Draft finish();

 private:
  struct State {
    TierId where;
    bool exists = false, current = false, fixed = false;
    std::uint32_t busy = kNever;  ///< the kernel that needs it now
  };
  bool is_fast(TensorId tensor) const { return state_[tensor.index].where == TierId{0}; }
  bool usable(TensorId tensor) const { return request_.machine[state_[tensor.index].where].addressable; }
  Result<void> begin();
  Result<void> run(std::uint32_t kernel);
  void compute(std::uint32_t kernel);
  Result<void> create(TensorId tensor);
  Result<void> bring(TensorId tensor);
  Result<void> evict(TensorId tensor);
  Result<void> make_room(Bytes size);
  Error full(Bytes need) const;
  void settle(TensorId tensor, TierId where);
  void end(TensorId tensor);
  void leave_only(TensorId tensor, TierId tier);
  void return_to_start(TensorId tensor);

  const PlanRequest& request_;
  const StepUses& uses_;
  Bytes capacity_, used_;
  const std::vector<bool>& pinned_;
  ActiveLists lists_;
  PlanWriter writer_;
  std::vector<State> state_;  ///< by tensor
  std::vector<TensorId> left_;
  std::uint32_t kernel_ = 0;
};

}  // namespace terrace

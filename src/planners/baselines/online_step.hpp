// Records what an online policy does to one step, as a plan. The policy sees every kernel when it comes and
// knows nothing of those after it. Every transfer is waited for at once.
//
//   current    what a tensor's slower region holds is what the tensor holds
//
// A tensor is in fast memory, or in its spill tier, or current in both. Kernels use it in place where they
// can; what lies in a tier they cannot use is brought.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "migration/plan_writer.hpp"
#include "plan/step_uses.hpp"

namespace terrace {

class OnlineStep;

/// Decides; OnlineStep does. Made anew for every attempt.
class OnlinePolicy {
 public:
  virtual ~OnlinePolicy() = default;

  virtual void used(const Use& use) = 0;
  virtual void layer_end(OnlineStep& step) = 0;
  /// Which tensor leaves fast memory next.
  virtual std::optional<TensorId> victim(const std::function<bool(TensorId)>& may_leave) = 0;
  /// The tensor is in fast memory now, or in a slower tier.
  virtual void moved(TensorId tensor, bool fast) = 0;
  virtual void forgotten(TensorId tensor) = 0;
};

class OnlineStep {
 public:
  /// `pinned`: by tensor, which persistent ones are in fast memory from step to step.
  OnlineStep(const PlanRequest& request, const StepUses& uses, Bytes capacity, std::string planner,
             const std::vector<bool>& pinned, OnlinePolicy& policy);

  /// The tensors that had to leave though pinned; where there are any, the step is none.
  Result<std::vector<TensorId>> run();
  /// pre: run() was fine
  Draft finish();

  // For policies.
  bool is_fast(TensorId tensor) const { return state_[tensor.index].where == TierId{0}; }
  bool usable(TensorId tensor) const { return request_.machine[state_[tensor.index].where].addressable; }
  /// Copies it to fast memory, where it is not there yet; others leave. Fails where all of them are in use.
  Result<void> bring(TensorId tensor);

 private:
  struct State {
    TierId where;
    bool exists = false, current = false, fixed = false;
    std::uint32_t busy = kNever;  ///< the kernel that needs it now
  };
  Result<void> begin();
  Result<void> run(std::uint32_t kernel);
  void compute(std::uint32_t kernel);
  Result<void> create(TensorId tensor);
  Result<void> evict(TensorId tensor);
  Result<void> make_room(Bytes size);
  Error full(Bytes need) const;
  void settle(TensorId tensor, TierId where);
  void end(TensorId tensor);
  void leave_only(TensorId tensor, TierId tier);
  void go_home(TensorId tensor);

  const PlanRequest& request_;
  const StepUses& uses_;
  Bytes capacity_, used_;
  const std::vector<bool>& pinned_;
  OnlinePolicy& policy_;
  PlanWriter writer_;
  std::vector<State> state_;  ///< by tensor
  std::vector<TensorId> left_;
  std::uint32_t kernel_ = 0;
};

/// As many persistent tensors are pinned as never have to leave.
Result<Draft> record(const PlanRequest& request, const StepUses& uses, Bytes capacity,
                     const std::string& planner,
                     const std::function<std::unique_ptr<OnlinePolicy>()>& policy);

}  // namespace terrace

// Which tensors are in fast memory when: the decision most planners share.
//
//   gap        a time between two uses in which a tensor is not in fast memory
//   pinned     in fast memory from step to step
//   home       where a persistent tensor that is not pinned lies between steps: a slower tier
//
// Walks the kernels in order with transfers that take no time; where the next kernel's operands do not fit, a
// rule names the tensors that leave. What becomes of that in time (transfers at the last moment or ahead, in
// the background or not) is for the planner.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/step_uses.hpp"
#include "terrace/plan_request.hpp"

namespace terrace {

struct Eviction {
  TensorId tensor;
  std::uint32_t after = kNever;    ///< the kernel that used it last; kNever: it is out when the step starts
  std::uint32_t evicted = kNever;  ///< the kernel that needed the room; the number of kernels: the step's end
  std::uint32_t until = kNever;    ///< the kernel that uses it next; the number of kernels: the step's end
  bool stores = false;             ///< its slower copy is not current: it is written there first
  bool fetches = false;            ///< what it holds is needed again in fast memory
};

struct Residency {
  std::vector<bool> pinned;         ///< by tensor
  std::vector<Eviction> evictions;  ///< by `evicted`
};

/// What a rule may look at.
struct Candidate {
  TensorId tensor;
  std::uint32_t last_use = 0;
  std::uint32_t next_use = 0;  ///< of a persistent tensor beyond the step: in the next one
  Bytes size;
};
/// The tensor with the largest value leaves first. Constant between two uses.
using VictimRule = std::function<double(const Candidate&)>;

/// The farthest next use first, as Belady showed best for pages; small tensors last, since they free little.
double farthest_next_use(const Candidate& candidate);
/// The longest unused first.
double least_recently_used(const Candidate& candidate);

/// Fails where one kernel's operands and what is pinned exceed `capacity`, naming the kernel. Tensors that
/// are results and given or kept are always pinned.
Result<Residency> decide_residency(const PlanRequest& request, const StepUses& uses, Bytes capacity,
                                   const VictimRule& rule);

/// Every kernel's operands come for it and leave after it.
Residency nothing_stays(const PlanRequest& request, const StepUses& uses);

}  // namespace terrace

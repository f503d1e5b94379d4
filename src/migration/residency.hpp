// SPDX-License-Identifier: Apache-2.0
// Which tensors are in fast memory at which time: the decision that most planners share.
//
//   eviction   a time between two uses in which a tensor is not in fast memory
//   pinned     in fast memory from step to step
//   backing tier   where a persistent tensor that is not pinned lies between steps: a slower tier
//
// It is decided by a walk over the kernels in order, with transfers that take no time; where the next
// kernel's operands do not fit, a rule names the tensors that leave. What becomes of that in time (transfers
// at the last moment or ahead, in the background or not) is for the planner.
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

/// Returns, by tensor, whether it is a result that is also an input or persistent. Such a tensor always stays
/// in fast memory, because the step ends with it where it began.
std::vector<bool> results_that_stay(const Graph& graph);

/// What a rule may look at.
struct Candidate {
  TensorId tensor;
  std::uint32_t last_use = 0;
  std::uint32_t next_use =
      0;  ///< beyond the step's end where a persistent tensor is used again in the next step
  Bytes size;
};
/// Returns a value; the tensor with the largest one leaves first. It does not change between two uses.
using VictimRule = std::function<double(const Candidate&)>;

/// Evicts the farthest next use first, as Belady showed best for pages; small tensors last, since they free
/// little.
double farthest_next_use(const Candidate& candidate);
/// Evicts the least recently used tensor first.
double least_recently_used(const Candidate& candidate);

/// Decides what is in fast memory when. Fails where one kernel's operands and what is pinned exceed
/// `capacity`, naming the kernel. Tensors that are results and given or kept are always pinned.
Result<Residency> decide_residency(const PlanRequest& request, const StepUses& uses, Bytes capacity,
                                   const VictimRule& rule);

/// Returns the residency in which every kernel's operands come for it and leave after it.
Residency nothing_stays(const PlanRequest& request, const StepUses& uses);

}  // namespace terrace

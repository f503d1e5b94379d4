// What swap planners choose from, and how a choice becomes a plan.
//
//   absence    a tensor's stretches without a use that are chosen together: one stretch of a tensor that the
//              step makes; all of one that outlives steps, since it lies elsewhere between them, too
//   movement   one stretch of a chosen absence in time: when the tensor leaves and comes back
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "migration/plan_writer.hpp"
#include "migration/residency.hpp"

namespace terrace {

struct Stretch {
  std::uint32_t after = kNever;  ///< the kernel that used it last; kNever: the step's start
  std::uint32_t until = kNever;  ///< the kernel that uses it next; the number of kernels: the step's end
  bool needed = false;           ///< what it holds is used later; otherwise the tensor is just discarded
};

struct Absence {
  TensorId tensor;
  Bytes size;
  std::vector<Stretch> out;  ///< in order
};

/// Inputs before their first use, results after their last, and results that are given or kept always stay.
std::vector<Absence> absences(const PlanRequest& request, const StepUses& uses);

/// leave <= gone <= back <= stretch.until. Kernels stand for the moment before them.
struct Movement {
  TensorId tensor;
  Stretch stretch;
  std::uint32_t leave = 0;   ///< its transfer out starts
  std::uint32_t gone = 0;    ///< it is waited for, and the tensor is out
  std::uint32_t back = 0;    ///< its transfer in starts
  KernelId recomputed_by{};  ///< recomputes it, instead of any transfer
};

/// Out at once, back at the last moment.
Movement on_demand(const Absence& absence, const Stretch& stretch);

/// Bytes in fast memory during each kernel, and at the end, if nothing ever leaves.
std::vector<std::int64_t> bytes_if_all_stay(const PlanRequest& request, const StepUses& uses);
/// The same less what is out.
std::vector<std::int64_t> bytes_left(const PlanRequest& request, std::vector<std::int64_t> bytes,
                                     std::span<const Movement> movements);

/// Movements that never leave (gone == back, in the middle of a step) are left out. pre: of a persistent
/// tensor all stretches move or none
Result<Draft> write_movements(const PlanRequest& request, const StepUses& uses,
                              std::span<const Movement> movements, const std::string& planner,
                              PackingEffort effort = {2'000'000});

/// plan_to_fit, where next-use on demand comes in if `draft` fails.
Result<Plan> plan_swapped(const PlanRequest& request, const StepUses& uses, const std::string& planner,
                          const std::function<Result<Draft>(Bytes capacity)>& draft);

}  // namespace terrace

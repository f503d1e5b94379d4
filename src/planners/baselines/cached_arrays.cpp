#include "planners/baselines/cached_arrays.hpp"

#include "migration/fit.hpp"
#include "planners/baselines/recorded_policy.hpp"

namespace terrace {
namespace {

Result<Plan> plan_cached_arrays(const PlanRequest& request, const std::string& name,
                                std::string_view policy) {
  const StepUses uses(request.graph);
  return plan_to_fit(request, uses, name, [&](Bytes) -> Result<Draft> {
    auto recorded = record_policy(request, uses, policy, name);
    if (!recorded) return recorded.error();
    return std::move(recorded->draft);
  });
}

}  // namespace

Result<Plan> plan_cached_arrays_none(const PlanRequest& request) {
  return plan_cached_arrays(request, "ca-none", "none");
}

Result<Plan> plan_cached_arrays_l(const PlanRequest& request) {
  return plan_cached_arrays(request, "ca-l", "L");
}

Result<Plan> plan_cached_arrays_lm(const PlanRequest& request) {
  return plan_cached_arrays(request, "ca-lm", "LM");
}

Result<Plan> plan_cached_arrays_lmp(const PlanRequest& request) {
  return plan_cached_arrays(request, "ca-lmp", "LMP");
}

}  // namespace terrace

#include "planners/baselines/demand.hpp"

#include <fmt/format.h>

#include "planners/fit.hpp"
#include "planners/step_writer.hpp"

namespace terrace {
namespace {

/// Every transfer is waited for at once.
class DemandWriter {
 public:
  DemandWriter(const PlanRequest& request, const StepUses& uses, const Residency& residency, std::string name)
      : gaps_(residency.gaps),
        kernels_(uses.kernels()),
        evicted_(gaps_, kernels_, &Gap::evicted),
        until_(gaps_, kernels_, &Gap::until),
        writer_(request, uses, residency, std::move(name)) {}

  Result<Draft> write() {
    if (auto begun = writer_.begin(); !begun) return begun.error();
    for (std::uint32_t kernel = 0; kernel <= kernels_; ++kernel) {
      for (const std::uint32_t i : evicted_.at(kernel)) {
        if (auto gone = evict(gaps_[i]); !gone) return gone.error();
      }
      for (const std::uint32_t i : until_.at(kernel)) {
        if (gaps_[i].fetches) writer_.wait(writer_.fetch(gaps_[i].tensor));
      }
      if (kernel < kernels_) writer_.run(kernel);
    }
    return writer_.finish();
  }

 private:
  Result<void> evict(const Gap& gap) {
    if (!writer_.is_fast(gap.tensor)) return {};  // out from the start
    if (gap.stores) {
      const auto ticket = writer_.store(gap.tensor);
      if (!ticket) return ticket.error();
      writer_.wait(*ticket);
    }
    writer_.drop(gap.tensor);
    return {};
  }

  const std::vector<Gap>& gaps_;
  std::uint32_t kernels_;
  GapIndex evicted_, until_;
  StepWriter writer_;
};

Result<Plan> plan_on_demand(const PlanRequest& request, const VictimRule& rule, const std::string& name) {
  const StepUses uses(request.graph);
  return plan_to_fit(request, [&](Bytes capacity) -> Result<Draft> {
    const auto residency = decide_residency(request, uses, capacity, rule);
    if (!residency) return residency.error();
    return DemandWriter(request, uses, *residency, name).write();
  });
}

}  // namespace

Result<Plan> plan_all_fast(const PlanRequest& request) {
  const StepUses uses(request.graph);
  Residency residency;
  for (const Tensor& tensor : request.graph.tensors) residency.pinned.push_back(tensor.persistent);
  auto draft = DemandWriter(request, uses, residency, "all-fast").write();
  if (!draft) return draft.error();
  if (draft->needed[0] > request.budget[0]) {
    return Error{ErrorCode::too_large,
                 fmt::format("everything in fast memory takes {} and {} is given: take another planner",
                             readable(draft->needed[0]), readable(request.budget[0]))};
  }
  return std::move(draft->plan);
}

Result<Plan> plan_lru(const PlanRequest& request) {
  return plan_on_demand(request, least_recently_used, "lru");
}

Result<Plan> plan_next_use(const PlanRequest& request) {
  return plan_on_demand(request, farthest_next_use, "next-use");
}

}  // namespace terrace

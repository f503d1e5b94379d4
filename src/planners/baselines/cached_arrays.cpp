#include <set>
#include <tuple>

#include "planners/baselines/online.hpp"
#include "planners/baselines/online_step.hpp"
#include "planners/fit.hpp"

namespace terrace {
namespace {

struct Mode {
  bool eager = false, prefetch = false;  ///< M, P
};

class CachedArrays final : public OnlinePolicy {
 public:
  CachedArrays(std::size_t tensors, Mode mode) : mode_(mode), place_(tensors) {}

  bool clears_for_new() const override { return true; }
  bool keeps_dead() const override { return !mode_.eager; }

  void will_use(OnlineStep& step, const Use& use) override {
    place(use.tensor, false);
    // Where there is no room the kernel uses it in place, or the step brings it by force.
    if (use.writes || mode_.prefetch) (void)step.bring(use.tensor);
  }

  /// 003 section III: forward kernels archive what they only read.
  void used(const Use& use, Phase phase) override {
    place(use.tensor, phase == Phase::forward && !use.writes);
  }

  std::optional<TensorId> victim(const std::function<bool(TensorId)>& may_leave) override {
    for (const auto& [recent, time, tensor] : fast_) {
      if (may_leave({tensor})) return TensorId{tensor};
    }
    return std::nullopt;
  }

  void moved(TensorId tensor, bool fast) override {
    Place& place = place_[tensor.index];
    if (place.fast) fast_.erase(key(tensor));
    place.fast = fast;
    if (place.fast) fast_.insert(key(tensor));
  }

  void forgotten(TensorId tensor) override { moved(tensor, false); }

 private:
  struct Place {
    bool fast = false, archived = false;
    std::uint64_t time = 0;
  };
  using Key = std::tuple<bool, std::uint64_t, std::uint32_t>;  ///< not archived, time, tensor

  Key key(TensorId tensor) const {
    return {!place_[tensor.index].archived, place_[tensor.index].time, tensor.index};
  }

  void place(TensorId tensor, bool archived) {
    Place& place = place_[tensor.index];
    if (place.fast) fast_.erase(key(tensor));
    place.archived = archived;
    place.time = ++now_;
    if (place.fast) fast_.insert(key(tensor));
  }

  Mode mode_;
  std::vector<Place> place_;  ///< by tensor
  std::set<Key> fast_;        ///< the first to leave first
  std::uint64_t now_ = 0;
};

Result<Plan> plan_cached_arrays(const PlanRequest& request, const std::string& name, Mode mode) {
  const StepUses uses(request.graph);
  return plan_to_fit(request, uses, name, [&](Bytes capacity) {
    return record(request, uses, capacity, name,
                  [&] { return std::make_unique<CachedArrays>(request.graph.tensors.size(), mode); });
  });
}

}  // namespace

Result<Plan> plan_cached_arrays_l(const PlanRequest& request) {
  return plan_cached_arrays(request, "ca-l", {});
}

Result<Plan> plan_cached_arrays_lm(const PlanRequest& request) {
  return plan_cached_arrays(request, "ca-lm", {.eager = true});
}

Result<Plan> plan_cached_arrays_lmp(const PlanRequest& request) {
  return plan_cached_arrays(request, "ca-lmp", {.eager = true, .prefetch = true});
}

}  // namespace terrace

#include <set>

#include "migration/fit.hpp"
#include "planners/baselines/online.hpp"
#include "planners/baselines/online_step.hpp"

namespace terrace {
namespace {

class ActiveList final : public OnlinePolicy {
 public:
  explicit ActiveList(std::size_t tensors) : pages_(tensors) {}

  void used(const Use& use) override {
    Page& page = pages_[use.tensor.index];
    if (page.marked && !page.active) {
      enqueue(use.tensor, page.fast, true);
      page.marked = false;
    } else {
      page.marked = true;
    }
  }

  void layer_end(OnlineStep& step) override {
    spare_active_ = true;
    const std::set<Entry> hot = list(false, true);
    for (const auto& [arrival, tensor] : hot) {
      if (!step.bring({tensor})) break;
    }
    spare_active_ = false;
    age();
  }

  std::optional<TensorId> victim(const std::function<bool(TensorId)>& may_leave) override {
    for (const bool active : {false, true}) {
      if (active && spare_active_) break;
      for (const bool marked : {false, true}) {
        for (const auto& [arrival, tensor] : list(true, active)) {
          if (pages_[tensor].marked == marked && may_leave({tensor})) return TensorId{tensor};
        }
      }
    }
    return std::nullopt;
  }

  void moved(TensorId tensor, bool fast) override { enqueue(tensor, fast, pages_[tensor.index].active); }

  void forgotten(TensorId tensor) override {
    dequeue(tensor);
    pages_[tensor.index] = {};
  }

 private:
  struct Page {
    bool listed = false, fast = false, active = false, marked = false;
    std::uint64_t arrival = 0;
  };
  using Entry = std::pair<std::uint64_t, std::uint32_t>;  ///< arrival, tensor

  std::set<Entry>& list(bool fast, bool active) { return lists_[(fast ? 2 : 0) + (active ? 1 : 0)]; }

  void dequeue(TensorId tensor) {
    const Page& page = pages_[tensor.index];
    if (page.listed) list(page.fast, page.active).erase({page.arrival, tensor.index});
  }

  void enqueue(TensorId tensor, bool fast, bool active) {
    dequeue(tensor);
    Page& page = pages_[tensor.index];
    page = {true, fast, active, page.marked, ++arrivals_};
    list(fast, active).insert({page.arrival, tensor.index});
  }

  /// The oldest active ones that were not used since they were looked at last become inactive, until at most
  /// half of each memory's are active.
  void age() {
    for (const bool fast : {true, false}) {
      for (std::size_t left = list(fast, true).size(); left > 0; --left) {
        if (list(fast, true).size() <= list(fast, false).size()) break;
        const TensorId oldest{list(fast, true).begin()->second};
        Page& page = pages_[oldest.index];
        enqueue(oldest, fast, page.marked);
        page.marked = false;
      }
    }
  }

  std::vector<Page> pages_;  ///< by tensor
  std::set<Entry> lists_[4];
  std::uint64_t arrivals_ = 0;
  bool spare_active_ = false;  ///< only what is inactive makes way
};

}  // namespace

Result<Plan> plan_active_list(const PlanRequest& request) {
  const StepUses uses(request.graph);
  return plan_to_fit(request, uses, "active-list", [&](Bytes capacity) {
    return record(request, uses, capacity, "active-list",
                  [&] { return std::make_unique<ActiveList>(request.graph.tensors.size()); });
  });
}

}  // namespace terrace

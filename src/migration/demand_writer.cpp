#include "migration/demand_writer.hpp"

#include "migration/step_writer.hpp"

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

}  // namespace

Result<Draft> write_on_demand(const PlanRequest& request, const StepUses& uses, const Residency& residency,
                              std::string planner) {
  return DemandWriter(request, uses, residency, std::move(planner)).write();
}

}  // namespace terrace

#include "migration/demand_writer.hpp"

#include "migration/step_writer.hpp"

namespace terrace {
namespace {

/// Every transfer is waited for at once.
class DemandWriter {
 public:
  DemandWriter(const PlanRequest& request, const StepUses& uses, const Residency& residency, std::string name)
      : evictions_(residency.evictions),
        kernels_(uses.kernels()),
        evicted_(evictions_, kernels_, &Eviction::evicted),
        until_(evictions_, kernels_, &Eviction::until),
        writer_(request, uses, residency, std::move(name)) {}

  Result<Draft> write() {
    if (auto begun = writer_.begin(); !begun) return begun.error();
    for (std::uint32_t kernel = 0; kernel <= kernels_; ++kernel) {
      for (const std::uint32_t i : evicted_.at(kernel)) {
        if (auto gone = evict(evictions_[i]); !gone) return gone.error();
      }
      for (const std::uint32_t i : until_.at(kernel)) {
        if (evictions_[i].fetches) writer_.wait(writer_.fetch(evictions_[i].tensor));
      }
      if (kernel < kernels_) writer_.run(kernel);
    }
    return writer_.finish();
  }

 private:
  Result<void> evict(const Eviction& eviction) {
    if (!writer_.is_fast(eviction.tensor)) return {};  // out from the start
    if (eviction.stores) {
      const auto ticket = writer_.store(eviction.tensor);
      if (!ticket) return ticket.error();
      writer_.wait(*ticket);
    }
    writer_.drop(eviction.tensor);
    return {};
  }

  const std::vector<Eviction>& evictions_;
  std::uint32_t kernels_;
  EvictionIndex evicted_, until_;
  StepWriter writer_;
};

}  // namespace

Result<Draft> write_on_demand(const PlanRequest& request, const StepUses& uses, const Residency& residency,
                              std::string planner) {
  return DemandWriter(request, uses, residency, std::move(planner)).write();
}

}  // namespace terrace

#include "planners/best/best.hpp"

#include <optional>

#include "planners/baselines/prefetch.hpp"
#include "planners/baselines/swapping.hpp"
#include "planners/best/priced.hpp"
#include "planners/sentinel/sentinel.hpp"
#include "terrace/simulate.hpp"

namespace terrace {
namespace {

/// Shares of fast memory; which is best depends on how transfers and kernels meet.
constexpr double kReserves[] = {0.02, 0, 0.1};

/// Kernels. Beyond, it plans for many seconds.
constexpr std::size_t kLargeForCapuchin = 2000;

/// The fastest plan so far, by the simulator.
class Fastest {
 public:
  Fastest(const PlanRequest& request, const KernelClock& clock) : request_(request), clock_(clock) {}

  void offer(Result<Plan> plan) {
    if (!plan) {
      if (!reason_) reason_ = plan.error();
      return;
    }
    const Seconds step = simulate(request_.graph, request_.machine, clock_, *plan).step;
    if (plan_ && step >= step_) return;
    step_ = step;
    plan_ = *std::move(plan);
  }

  Result<Plan> take() {
    if (!plan_) return *reason_;
    return *std::move(plan_);
  }

 private:
  const PlanRequest& request_;
  const KernelClock& clock_;
  std::optional<Plan> plan_;
  std::optional<Error> reason_;
  Seconds step_{0};
};

}  // namespace

Result<Plan> plan_best(const PlanRequest& request) {
  const PlanRequest plain{request.graph, request.machine, request.profile, request.budget, request.seed};
  const best::PricedPlanning priced(plain);
  Fastest fastest(request, priced.clock());
  // Each is the fastest of them for some graph, machine and budget.
  for (auto* planner : {plan_prefetch, plan_sentinel}) fastest.offer(planner(plain));
  if (request.graph.kernels.size() <= kLargeForCapuchin) fastest.offer(plan_capuchin(plain));
  for (std::uint64_t i = 0; i < priced.tries(); ++i) {
    const best::Order order = i % 2 == 0 ? best::Order::largest_first : best::Order::random;
    fastest.offer(priced.plan({kReserves[i % std::size(kReserves)], order, request.seed + i}));
  }
  return fastest.take();
}

}  // namespace terrace

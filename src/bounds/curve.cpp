#include "bounds/curve.hpp"

#include <algorithm>
#include <numeric>

namespace terrace {

BoundCurve::BoundCurve(const PlanRequest& request, bounds::Recompute recompute)
    : clock_(request.graph, request.machine, request.profile),
      problem_(request, clock_),
      relaxation_(problem_),
      recompute_(recompute) {}

void BoundCurve::add(Bytes fast) {
  constexpr std::uint64_t kWork = 1'000'000, kLeast = 60, kMost = 1000;  // uses of tensors, bounds
  problem_.capacity = static_cast<double>(fast.count);
  bounds::Ascent ascent(problem_, recompute_);
  ascent.climb(std::clamp(kWork / std::max<std::uint64_t>(problem_.uses.size(), 1), kLeast, kMost));
  multipliers_.push_back(ascent.multipliers());
}

BoundCurve::Proof BoundCurve::at(Bytes fast) {
  problem_.capacity = static_cast<double>(fast.count);
  Proof best{clock_.fast_step(), 0};
  for (const bounds::Multipliers& multipliers : multipliers_) {
    const Seconds bound{relaxation_.bound(multipliers, recompute_)};
    if (bound > best.bound)
      best = {bound, std::accumulate(multipliers.memory.begin(), multipliers.memory.end(), 0.0)};
  }
  return best;
}

}  // namespace terrace

#include "bounds/curve.hpp"

#include <algorithm>
#include <numeric>

namespace terrace {

BoundCurve::BoundCurve(const PlanRequest& request, bounds::Again again)
    : clock_(request.graph, request.machine, request.profile),
      problem_(request, clock_),
      relaxation_(problem_),
      again_(again) {}

void BoundCurve::add(Bytes fast) {
  constexpr std::uint64_t kWork = 1'000'000, kLeast = 60, kMost = 1000;  // uses of tensors, bounds
  problem_.capacity = static_cast<double>(fast.count);
  bounds::Ascent ascent(problem_, again_);
  ascent.climb(std::clamp(kWork / std::max<std::uint64_t>(problem_.uses.size(), 1), kLeast, kMost));
  prices_.push_back(ascent.prices());
}

BoundCurve::Proof BoundCurve::at(Bytes fast) {
  problem_.capacity = static_cast<double>(fast.count);
  Proof best{clock_.fast_step(), 0};
  for (const bounds::Prices& prices : prices_) {
    const Seconds bound{relaxation_.bound(prices, again_)};
    if (bound > best.bound) best = {bound, std::accumulate(prices.memory.begin(), prices.memory.end(), 0.0)};
  }
  return best;
}

}  // namespace terrace

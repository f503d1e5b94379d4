// The bound of a step over the budget of tier 0, where prices found for one budget serve all others.
//
// Any prices prove a bound at any budget (plan/bound_prices.hpp). They are climbed to at some budgets; the
// bound at another is the best that any of them prove there. So a budget at which the climb does not leave
// the ground, as happens where no single moment helps, has a bound from its neighbours. Not thread-safe.
#pragma once

#include <vector>

#include "bounds/ascent.hpp"

namespace terrace {

class BoundCurve {
 public:
  /// Borrows the profile. The budget of tier 0 does not matter.
  BoundCurve(const PlanRequest& request, bounds::Recompute recompute);
  BoundCurve(const BoundCurve&) = delete;
  BoundCurve& operator=(const BoundCurve&) = delete;

  /// Climbs at this budget, and keeps the prices.
  void add(Bytes fast);

  struct Proof {
    Seconds bound{0};
    double seconds_per_byte = 0;  ///< the sum of the prices of memory; 0 where the kernels alone prove it
  };
  Proof at(Bytes fast);

 private:
  KernelClock clock_;
  bounds::Problem problem_;
  bounds::Relaxation relaxation_;
  bounds::Recompute recompute_;
  std::vector<bounds::Multipliers> multipliers_;
};

}  // namespace terrace

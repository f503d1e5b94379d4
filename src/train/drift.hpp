// Drift: how the computer differs from the machine that a plan was made for, learnt from executed steps.
#pragma once

#include <vector>

#include "terrace/simulate.hpp"

namespace terrace {

/// How many times as long as predicted things took: 2 is half as fast.
struct Drift {
  double kernels = 1;
  std::vector<double> links;  ///< one for each link of the machine; 1 where nothing moved

  /// The largest factor, either way.
  double largest() const;
};

/// Of one step. A link's time is that in which it had something to carry.
Drift drift_of(const Machine& machine, const Plan& plan, const Timeline& measured, const Timeline& predicted);

/// The median of each factor. pre: at least one, all of one machine
Drift median_of(const std::vector<Drift>& drifts);

/// As it turned out to be.
Machine corrected(Machine machine, const Drift& drift);
Profile corrected(Profile profile, const Drift& drift, const Machine& machine);

}  // namespace terrace

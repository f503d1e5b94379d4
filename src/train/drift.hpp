// SPDX-License-Identifier: Apache-2.0
// Drift: how the computer differs from the machine that a plan was made for, learnt from executed steps.
#pragma once

#include <vector>

#include "terrace/simulate.hpp"

namespace terrace {

/// Factors of time: a factor of 2 says that something took twice as long as predicted.
struct Drift {
  double kernels = 1;
  std::vector<double> links;  ///< one for each link of the machine; 1 where nothing moved

  /// The largest factor, either way.
  double largest() const;
};

/// The drift that one step shows. A link counts while it has something to carry.
Drift drift_of(const Machine& machine, const Plan& plan, const Timeline& measured, const Timeline& predicted);

/// How much the kernels of a step differ from what was predicted for each, whichever way, as a share of all
/// their time: a few that are slower and a few that are faster do not show in one factor.
double unevenness(const Plan& plan, const Timeline& measured, const Timeline& predicted);

/// Each instruction as long as in the median of these steps. pre: at least one, all of one plan
Timeline median_of(const std::vector<Timeline>& steps);

/// The median of each factor. pre: at least one, all of one machine
Drift median_of(const std::vector<Drift>& drifts);

/// The machine, and a profile, as they turned out to be.
Machine corrected(Machine machine, const Drift& drift);
Profile corrected(Profile profile, const Drift& drift, const Machine& machine);

}  // namespace terrace

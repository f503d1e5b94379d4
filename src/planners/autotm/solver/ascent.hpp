// Climbing to better multipliers of the placement problem (optim/subgradient_ascent.hpp). The units: what a
// link is worth to its kernel, what memory is worth on average, and one for the overlap.
#pragma once

#include "optim/subgradient_ascent.hpp"
#include "planners/autotm/solver/relaxation.hpp"

namespace terrace::autotm {

class Ascent {
 public:
  Ascent(const Flat& flat, Team& team);

  /// Takes the bound at the present multipliers and moves them. `aim`: what the bound is hoped to reach; at
  /// or below the bound they stay.
  void step(double aim);

  double bound() const { return best_; }
  /// The multipliers of the best bound.
  const Multipliers& multipliers() const { return best_multipliers_; }
  /// By configuration: whether it was its kernel's best at some of the multipliers.
  const std::vector<bool>& taken() const { return taken_; }

 private:
  void remember(double bound);

  Relaxation relaxation_;
  Multipliers multipliers_, best_multipliers_;
  std::vector<bool> taken_;
  double best_;
  optim::SubgradientAscent<Multipliers, Relaxation::Subgradient, optim::RateEveryFewSteps> steps_;
};

}  // namespace terrace::autotm

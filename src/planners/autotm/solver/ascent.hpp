// Climbing to better prices: subgradient steps of Polyak's length with a heavy ball's memory.
//
// A step is as long as would reach the aim if the bound went on rising as steeply, times a factor. Whenever
// the bound has not risen for a while the factor shrinks and the ball gets heavier. Prices differ by orders
// of magnitude, so each goes in units of its own (what a link is worth to its kernel, what memory is worth on
// average, one for the overlap) and the slower the more its coupling has been broken so far.
#pragma once

#include "planners/autotm/solver/relaxation.hpp"

namespace terrace::autotm {

class Ascent {
 public:
  Ascent(const Flat& flat, Team& team);

  /// Takes the bound at the present prices and moves them. `aim`: what the bound is hoped to come to; at or
  /// below the bound they stay.
  void step(double aim);

  double bound() const { return best_; }
  /// Those of the best bound.
  const Multipliers& multipliers() const { return best_multipliers_; }
  /// By configuration: whether it was its kernel's best at some of the prices.
  const std::vector<bool>& taken() const { return taken_; }

 private:
  /// The prices of one kind of coupling.
  struct Kind {
    std::vector<double> Multipliers::*multipliers;
    std::vector<double> Relaxation::Subgradient::*subgradient;
    double most;                   ///< that a price can be
    std::vector<double> scale;     ///< by price: the square of its unit
    std::vector<double> squares;   ///< by price: of its pulls in that unit, over all steps
    std::vector<double> rate;      ///< by price: how fast it goes for one unit of pull
    std::vector<double> velocity;  ///< by price
  };

  void add(Kind kind);
  void remember(double bound);
  /// The square of the direction's length.
  double measure(Kind& kind);
  void move(Kind& kind, double length);

  Team& team_;
  Relaxation relaxation_;
  Multipliers multipliers_, best_multipliers_;
  std::vector<bool> taken_;
  double best_;
  std::vector<Kind> kinds_;
  double factor_ = 1;
  double slip_;  ///< what the ball loses of its velocity in a step
  int stalled_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace terrace::autotm

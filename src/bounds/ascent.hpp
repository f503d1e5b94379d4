// Finds multipliers with a high bound. Any multipliers give a bound, so the search may stop anywhere.
//
// It starts from one moment: memory has a multiplier then and at no other time, and links before and
// after it count for nothing or for all. From there it takes subgradient steps
// (optim/subgradient_ascent.hpp).
#pragma once

#include <cstdint>

#include "bounds/relaxation.hpp"
#include "optim/subgradient_ascent.hpp"

namespace terrace::bounds {

class Ascent {
 public:
  /// For plans that may recompute values, or for those that may not.
  Ascent(const Problem& problem, Recompute recompute);

  /// Takes so many bounds in all, or fewer where everything fits.
  void climb(std::uint64_t bounds);
  /// Starts from the best multipliers of another ascent on the same problem.
  void climb_from(const Ascent& other, std::uint64_t bounds);

  double bound() const { return best_; }
  /// The multipliers of the best bound.
  const Multipliers& multipliers() const { return best_multipliers_; }

 private:
  double take();
  void look_from(std::uint32_t moment, double out, double in, int halvings);
  void look_around(std::uint32_t moment, int halvings);
  void walk(std::uint64_t bounds);
  void set_units();
  void step();

  const Problem& problem_;
  Recompute recompute_;
  Relaxation relaxation_;
  Multipliers multipliers_, best_multipliers_;
  double best_ = 0, latest_ = 0;
  std::uint64_t taken_ = 0;
  optim::Team alone_{1};  ///< bounds are taken on one thread
  optim::SubgradientAscent<Multipliers, Relaxation::Subgradient, optim::RateEachStep> steps_;
};

}  // namespace terrace::bounds

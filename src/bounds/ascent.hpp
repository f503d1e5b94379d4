// Finds prices with a high bound. Any prices give a bound, so it may stop anywhere.
//
// Starts from the best view of one moment: memory has a price then and at no other time, and links before and
// after it count for nothing or for all. From there subgradient steps with a heavy ball's memory, each price
// in a unit of its own and the slower the more its coupling has been broken so far.
#pragma once

#include <cstdint>

#include "bounds/relaxation.hpp"

namespace terrace::bounds {

class Ascent {
 public:
  /// For plans that compute things again, or do not.
  Ascent(const Problem& problem, Recompute recompute);

  /// So many bounds are taken in all; fewer where everything fits.
  void climb(std::uint64_t bounds);
  /// From the best prices of another that has climbed for the same problem.
  void climb_from(const Ascent& other, std::uint64_t bounds);

  double bound() const { return best_; }
  /// Those of the best bound.
  const Multipliers& multipliers() const { return best_multipliers_; }

 private:
  /// The prices of one kind of coupling.
  struct Kind {
    std::vector<double> Multipliers::*multipliers;
    std::vector<double> Relaxation::Subgradient::*subgradient;
    std::vector<double> unit = {};
    std::vector<double> mean = {};  ///< of the squares of its pulls in that unit, over all steps
    std::vector<double> velocity = {};
  };

  double take();
  void look_from(std::uint32_t moment, double out, double in, int halvings);
  void look_around(std::uint32_t moment, int halvings);
  void walk(std::uint64_t bounds);
  void set_units();
  void step();
  double measure(Kind& kind);
  void move(Kind& kind, double length);

  const Problem& problem_;
  Recompute recompute_;
  Relaxation relaxation_;
  Multipliers multipliers_, best_multipliers_;
  double best_ = 0, latest_ = 0;
  std::uint64_t taken_ = 0;
  std::vector<Kind> kinds_;
  double factor_ = 1, slip_;
  int stalled_ = 0;
  double steps_ = 0;
};

}  // namespace terrace::bounds

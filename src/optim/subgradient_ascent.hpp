// Moves Lagrange multipliers along subgradients: steps of Polyak's length, with momentum.
//
// A step is as long as would gain what the caller hopes for if the bound went on rising as steeply, times a
// factor. Whenever the bound has not risen for a while the factor shrinks and momentum lasts longer.
// Multipliers differ by orders of magnitude, so each goes in a unit of its own, and the more slowly the
// larger its subgradients have been so far. Which bound is climbed is for the caller: it takes bounds and
// subgradients, says whether the bound rose, and keeps the best multipliers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "optim/team.hpp"

namespace terrace::optim {

struct AscentRules {
  int patience = 30;         ///< bounds without a rise, after which steps get shorter
  double shrink = 0.7;       ///< what is left of a step's length then
  double first_slip = 0.2;   ///< the share of its velocity that a multiplier loses in a step, at first,
  double least_slip = 0.03;  ///< at last,
  double less_slip = 0.9;    ///< and what is left of it whenever steps get shorter
};

/// How far a multiplier goes for one unit of subgradient: its squared unit over the root of the mean square
/// of its subgradients in that unit. This one is up to date at every step.
struct RateEachStep {
  double mean = 0, rate = 0;
  /// Returns what the multiplier adds to the square of the direction's length.
  double take(double unit, double slope, std::uint64_t steps) {
    const double force = unit * slope, square = force * force;
    mean += (square - mean) / static_cast<double>(steps);
    rate = mean > 0 ? unit * unit / std::sqrt(mean) : 0;
    return square > 0 ? square / std::sqrt(mean) : 0;
  }
};

/// The same, computed anew every few steps: it changes little from one to the next, and roots take time.
struct RateEveryFewSteps {
  static constexpr std::uint64_t kFew = 8;
  double squares = 0, rate = 0;
  double take(double unit, double slope, std::uint64_t steps) {
    const double scale = unit * unit, square = slope * slope;
    squares += scale * square;
    if (steps < kFew || steps % kFew == 0)
      rate = squares > 0 ? scale * std::sqrt(static_cast<double>(steps) / squares) : 0;
    return rate * square;
  }
};

/// `Multipliers` and `Subgradient` have a vector of the same size for each kind of constraint.
template <class Multipliers, class Subgradient, class Rate>
class SubgradientAscent {
 public:
  using Values = std::vector<double> Multipliers::*;
  using Slopes = std::vector<double> Subgradient::*;

  /// Borrows the team.
  SubgradientAscent(const AscentRules& rules, Team& team)
      : rules_(rules), team_(team), slip_(rules.first_slip) {}

  /// Adds the multipliers of one kind of constraint, which lie between 0 and `most`, with a unit for each.
  void add(Values values, Slopes slopes, double most, std::vector<double> units) {
    const std::size_t size = units.size();
    kinds_.push_back(
        {values, slopes, most, std::move(units), std::vector<Rate>(size), std::vector<double>(size)});
  }

  /// Says after each bound whether it is the best so far.
  void note(bool rose) {
    if (rose) {
      stalled_ = 0;
    } else if (++stalled_ == rules_.patience) {
      stalled_ = 0;
      factor_ *= rules_.shrink;
      slip_ = std::max(slip_ * rules_.less_slip, rules_.least_slip);
    }
  }
  /// Steps have their first length again.
  void begin() {
    stalled_ = 0;
    factor_ = 1;
  }

  /// Moves the multipliers to where the bound would have gained so much. Returns whether they moved: not
  /// where no constraint is violated, nor where nothing is to be gained.
  bool step(double gain, const Subgradient& slopes, Multipliers& multipliers) {
    ++steps_;
    double square = 0;
    for (Kind& kind : kinds_) square += measure(kind, multipliers.*kind.values, slopes.*kind.slopes);
    if (square <= 0 || gain <= 0) return false;
    const double length = factor_ * gain / square;
    for (Kind& kind : kinds_) move(kind, length, slopes.*kind.slopes, multipliers.*kind.values);
    return true;
  }

 private:
  struct Kind {
    Values values;
    Slopes slopes;
    double most;
    std::vector<double> units;
    std::vector<Rate> rates;
    std::vector<double> velocity;
  };

  /// The part of a subgradient that does not push its multiplier out of its range.
  static double inward(double value, double slope, double most) {
    return (value <= 0 && slope < 0) || (value >= most && slope > 0) ? 0 : slope;
  }

  /// Returns the square of the direction's length.
  double measure(Kind& kind, const std::vector<double>& values, const std::vector<double>& slopes) {
    return team_.sum(kind.units.size(), [&](std::size_t i) {
      return kind.rates[i].take(kind.units[i], inward(values[i], slopes[i], kind.most), steps_);
    });
  }

  void move(Kind& kind, double length, const std::vector<double>& slopes, std::vector<double>& values) {
    team_.each(kind.units.size(), [&](std::size_t i) {
      kind.velocity[i] = (1 - slip_) * kind.velocity[i] + length * kind.rates[i].rate * slopes[i];
      values[i] = std::clamp(values[i] + kind.velocity[i], 0.0, kind.most);
    });
  }

  AscentRules rules_;
  Team& team_;
  std::vector<Kind> kinds_;
  double factor_ = 1;
  double slip_;
  int stalled_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace terrace::optim

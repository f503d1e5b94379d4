// SPDX-License-Identifier: Apache-2.0
// The relaxation of one reduced problem, on the way from first multipliers to good ones and to shares of
// paths.
//
// How much a reduction (reduction.hpp) gives away is a share of the gap that its bounds are for. With a small
// gap it leaves a problem several times as large, with steps as much slower. So a solver begins with a stage
// for a large gap and goes on with one for the gap asked, which takes along all that the first one found.
//
// Steps of one stage and calls that look at what they change are not to be mixed between threads.
#pragma once

#include <optional>
#include <stop_token>

#include "planners/autotm/solver/primal_dual.hpp"
#include "planners/autotm/solver/reduction.hpp"

namespace terrace::autotm {

class Stage {
 public:
  /// Borrows the whole problem and the team.
  Stage(const Flat& whole, double gap, Team& team);
  /// Goes on where another ended. pre: that has multipliers and shares, and moves may be beside kernels
  Stage(const Flat& whole, double gap, const Stage& coarser);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// Finds first multipliers, aiming at a little more than what is proven: the first placement, which takes
  /// `time`, is far too slow to aim at. Returns how many steps it took.
  std::uint64_t climb(Seconds time, const std::stop_token& stop);
  /// Finds better multipliers and shares, in at most so many steps, fewer where the bound is enough; returns
  /// how many. pre: climbed
  std::uint64_t balance(std::uint64_t steps, double enough, const std::stop_token& stop);

  /// The best bound so far, with its multipliers for the smaller problem. From coarser stages on it does not
  /// fall.
  double bound() const { return bound_; }
  const Multipliers& multipliers() const { return best_; }
  double gap() const { return gap_; }
  /// Returns how much of a bound the smaller problem gives away at most, in seconds.
  double given_away() const;
  /// The tensors of the whole problem that are in the smaller one.
  const std::vector<std::uint32_t>& tensors() const { return reduction_.tensors; }
  /// Shows for the whole problem, by tensor its fractionality, by edge how much of it is taken, and the
  /// multipliers.
  void show(std::vector<double>& fractionality, std::vector<double>& shares, Multipliers& multipliers) const;

 private:
  void take_bound(const Multipliers& multipliers);

  double gap_;
  Team& team_;
  Reduction reduction_;
  Cuts cuts_;  ///< inequalities of the smaller problem
  Relaxation relaxation_;
  Multipliers best_;
  double bound_ = 0;
  std::optional<PrimalDual> primal_dual_;  ///< none before the climb
  bool overlaps_;                          ///< some move may be beside a kernel
  bool is_balanced_ = false;               ///< there are shares, which may break inequalities
};

}  // namespace terrace::autotm

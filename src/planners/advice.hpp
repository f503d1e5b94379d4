// SPDX-License-Identifier: Apache-2.0
// Advice: how fast a step is for how much fast memory, what that memory costs, and how little of it will do.
//
//   curve      for every budget of tier 0 that was planned for: the fastest of all plans made so far that fit
//              in it, so that more memory never means a longer step. A bound of a larger budget is one of a
//              smaller, too, and prices of any budget prove a bound at all others
//   slowdown   by how much a step takes longer than with everything in fast memory: 0.05 is 5%
//   price      of the bytes that a plan uses at once, of all tiers (001 section 6.3)
//   frontier   the points that no other beats: none is as cheap and faster, or as fast and cheaper; without
//              prices a byte of tier 0 is what costs
//
// Every plan is made from the start: no planner takes a plan or prices of another budget to begin with. Where
// everything fits, the plan is `all-fast`. Kernels are taken as they are, so that budgets below what one of
// them needs are out of reach. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bounds/curve.hpp"
#include "terrace/planner.hpp"
#include "terrace/verify.hpp"

namespace terrace {

struct AdviceRequest {
  const Graph& graph;
  const Machine& machine;
  const Profile& profile;
  std::vector<Bytes> budget;  ///< the most that may be taken, by tier
  std::string planner = "best";
  std::vector<std::optional<double>> prices = {};  ///< of a gigabyte, by tier; empty: the machine's own
  std::function<void(Bytes fast)> progress = [](Bytes) {};  ///< told before each plan is made
};

struct AdvicePoint {
  Bytes fast;                                ///< the budget of tier 0
  std::shared_ptr<const VerifiedPlan> plan;  ///< its own budget is what its regions reach
  std::vector<Bytes> used;                   ///< by tier: the most bytes of regions at once
  Seconds step{0};                           ///< as simulated
  Seconds bound{0};                          ///< no plan for this budget is faster
  double slowdown = 0;
  std::optional<double> price = {};  ///< none: some tier that the plan uses has no price
  bool frontier = false;
};

class Adviser {
 public:
  /// Borrows graph, machine and profile. pre: as many budgets as tiers, and as many prices or none
  explicit Adviser(AdviceRequest request);

  /// The most bytes live at once in the graph.
  Bytes peak() const { return peak_; }
  /// The time of a step with everything in fast memory.
  Seconds fast_only() const { return fast_only_; }
  /// A budget in which everything fits, as it is packed; the peak where the machine has not that much.
  Bytes all_fast() const { return all_fast_; }
  /// The price of the peak's bytes.
  std::optional<double> all_fast_price() const;

  /// Adds a point to the curve, or does nothing where it has that. Fails as make_plan does; what was refused
  /// once is not planned again. pre: no more than the most
  Result<void> plan_for(Bytes fast);
  /// Adds a point for each of them, for the least budget and for the most that helps. Those below the least,
  /// above the most or refused by the planner are left out; fails where none is left.
  Result<void> plan_for_all(std::vector<Bytes> budgets);

  /// Ascending in `fast`.
  std::vector<AdvicePoint> curve() const;

  /// The least fast memory in which some plan is not slower than that, to a hundredth of what everything
  /// takes: bisects, and leaves what it tried on the curve. Fails where no budget will do, with what the
  /// fastest plan and the bound say.
  Result<AdvicePoint> least_for(double slowdown);

 private:
  struct Tried {
    Bytes fast;
    Seconds bound{0};  ///< the best so far
  };
  struct Kept {
    std::shared_ptr<const VerifiedPlan> plan;
    std::vector<Bytes> used;
    Seconds step{0};
    /// The bytes of tier 0 that the plan takes.
    Bytes taken() const { return (*plan)->budget[0]; }
  };

  PlanRequest asked(Bytes fast) const;
  void add_bound(Bytes fast, Seconds bound);
  Result<void> keep(Plan plan);
  void plan_everything();
  /// The budget beyond which nothing is gained, as far as there is memory.
  Bytes most() const;
  AdvicePoint point(Bytes fast) const;
  std::optional<double> price(const std::vector<Bytes>& used) const;
  const Kept* smallest_within(Seconds step) const;
  Bytes largest_tried_below(Bytes fast) const;
  Error out_of_reach(double slowdown) const;

  AdviceRequest request_;
  Bytes peak_, all_fast_;
  Seconds fast_only_;
  bool everything_fits_ = false;
  std::vector<Kept> plans_;
  BoundCurve bounds_;
  std::vector<Tried> tried_;        ///< with a plan; ascending in `fast`
  std::map<Bytes, Error> refused_;  ///< by budget: what the planner said
};

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Plans guided by the bound's multipliers: they and sweeps decide where every tensor is (placement.hpp), and
// the migration writer puts that into time, with every kernel an interval of its own.
#pragma once

#include <span>
#include <vector>

#include "migration/migration_writer.hpp"
#include "planners/best/placement.hpp"

namespace terrace::best {

/// How much work goes into good multipliers: less where a request is one of many.
enum class MultiplierEffort { careful, rough };

/// What all plans for one request share.
/// Where a persistent tensor that leaves fast memory during the step is between two steps: where its path has
/// it, so that the first and the last kernels need not wait for it, or in slower memory.
enum class Between { as_placed, in_slow };

class GuidedPlanning {
 public:
  /// `side_by_side`: persistent tensors that are in fast memory from step to step, in this order.
  explicit GuidedPlanning(const PlanRequest& request, MultiplierEffort pricing = MultiplierEffort::careful,
                          std::span<const TensorId> side_by_side = {});

  struct Recipe {
    double reserve = 0;  ///< share of fast memory left to transfers on their way
    Order order = Order::largest_first;
    std::uint64_t seed = 0;
    bool exchanges = true;  ///< whether tensors that compete for memory choose in other orders, too
    /// Where kernels use fast memory alone; elsewhere copies are always expected to be hidden.
    Copies copies = Copies::waited_for;
    Between between = Between::as_placed;
  };
  /// Falls back on what `plan_to_fit` does where the sweeps fit nothing.
  Result<Plan> plan(const Recipe& recipe) const;
  /// Fails where the sweeps fit nothing; the draft may still need too much.
  Result<Draft> draft(const Recipe& recipe) const;
  /// How many recipes are worth trying: fewer for large graphs.
  std::uint64_t tries(std::uint64_t most) const;
  const KernelClock& clock() const { return view_.clock; }
  const StepUses& uses() const { return view_.uses; }
  const bounds::Problem& problem() const { return problem_; }
  const bounds::Multipliers& multipliers() const { return multipliers_; }

 private:
  void time_copies();
  Result<Draft> draft(Bytes capacity, const Recipe& recipe) const;
  Copies expected(const Recipe& recipe) const {
    return problem_.addressable ? Copies::hidden : recipe.copies;
  }
  Placement place(double capacity, const Recipe& recipe) const;
  migration::Schedule schedule(const Placement& placement, Between between) const;
  void add_unit(std::uint32_t unit, const Placement& placement, Between between,
                migration::Schedule& schedule) const;

  const PlanRequest& request_;
  migration::StepView view_;
  migration::Units units_;
  migration::Visits visits_;
  bounds::Problem problem_;
  bounds::Multipliers multipliers_;
  std::vector<CopyTime> copies_;       ///< by tensor of the problem
  std::vector<std::uint32_t> number_;  ///< by tensor: its number in the problem, or kNever
};

}  // namespace terrace::best

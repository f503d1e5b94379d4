// SPDX-License-Identifier: Apache-2.0
// Shadow prices: what a little more memory, or a little more of a link, would be worth at one budget.
//
// Of tier 0. A problem relaxed to fractions of tensors has a least time T(C) for a capacity C of fast memory,
// convex and falling. Prices of a byte at each moment prove a bound at C, in which C stands only as minus
// price times C: their sum p is the slope of a line that is nowhere above T, T(C') >= bound - p (C' - C). So
// p is minus the derivative of T at C, where it has one and the prices are the best; a byte more saves p
// seconds at most, and a byte less costs p at least, as far as the bound is T. The problem is the one made
// for C: what fits only in more than C is not part of it. Three problems are priced:
//
//   program      AutoTM's placement (autotm/instance.hpp) in the planner's own formulation: for AutoTM's
//                planners, where kernels can use slower memory; elsewhere its solver has no prices
//   moving plan  any plan that computes everything once, `Bound::moving` (plan/bound_prices.hpp): for all
//                other plans that do
//   any plan     the same for plans that may recompute values, `Bound::step`
//
// Of other tiers. As long as a plan leaves room in one, more of it is worth nothing; else it is not known.
//
// Of links. A finite difference: what the same plan gains in the simulator with this link a tenth faster,
// over that tenth of its rate for large transfers. A planner that knew of the faster link might gain more.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/planner.hpp"

namespace terrace {

enum class PricedBy { program, moving_plan, any_plan };

/// What memory of the fastest tier is worth.
struct MemoryWorth {
  double seconds_per_gigabyte = 0;  ///< p above, for 1e9 bytes
  Seconds bound{0};                 ///< that the prices prove
  PricedBy by = PricedBy::moving_plan;
};

/// Returns which problem says what memory is worth to a plan.
PricedBy priced_by(const PlanRequest& request, const Plan& plan, std::string_view planner);

/// Returns what memory is worth at the budget of the request. Fails as AutoTM's solver does. Single-threaded;
/// stops after a number of iterations or a few seconds. pre: `program` is for AutoTM's planners
Result<MemoryWorth> memory_worth(const PlanRequest& request, std::string_view planner, PricedBy by);

struct LinkWorth {
  TierId from, to;
  double seconds_per_gigabyte_per_second = 0;  ///< of a step; below zero where faster copies meet worse
};

/// Returns what every link of the machine is worth. pre: `verify` accepts the plan
std::vector<LinkWorth> link_worths(const PlanRequest& request, const Plan& plan);

struct ShadowPrices {
  std::optional<MemoryWorth> memory;                        ///< of tier 0
  std::string reason;                                       ///< why there is none
  std::vector<std::optional<double>> seconds_per_gigabyte;  ///< by tier; none: not known
  std::vector<LinkWorth> links;
};

/// pre: `verify` accepts the plan, which fits the budget of the request; `planner` made it
ShadowPrices shadow_prices(const PlanRequest& request, const Plan& plan, std::string_view planner);

}  // namespace terrace

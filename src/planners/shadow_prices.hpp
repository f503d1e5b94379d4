// Shadow prices: what a little more memory, or a little more of a link, would be worth at one budget.
//
// Of tier 0. AutoTM's placement problem (autotm/instance.hpp), relaxed to fractions, has a least time T(C)
// for a capacity C of fast memory. T is convex and falls with C. The fast solver's prices, by moment and
// byte, sum up to a slope -p of a line that nowhere is above T: every C' has T(C') >= bound - p (C' - C),
// where `bound` is what the prices prove at C. So p is minus the derivative of T at C, where it has one and
// the prices are the best; a byte more saves p seconds at most, and a byte less costs p at least, as far as
// the bound is T. The problem is the one made for C: what fits only in more than C is not part of it.
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

#include "planners/autotm/instance.hpp"

namespace terrace {

/// Of the fastest tier, by the fast solver.
struct MemoryWorth {
  double seconds_per_gigabyte = 0;  ///< p above, for 1e9 bytes
  Seconds bound{0};
  double gap = 0;  ///< of the placement found to that bound: how near the prices may be to the best
};

/// At the budget of the request. Fails as the solver does. Single-threaded; stops after a number of
/// iterations or a few seconds.
Result<MemoryWorth> memory_worth(const PlanRequest& request, autotm::Formulation formulation);

/// Of AutoTM's planners their own; others move tensors in the background, so theirs is `asynchronous`.
autotm::Formulation formulation_of(std::string_view planner);

struct LinkWorth {
  TierId from, to;
  double seconds_per_gigabyte_per_second = 0;  ///< of a step; below zero where faster copies meet worse
};

/// Of every link of the machine. pre: `verify` accepts the plan
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

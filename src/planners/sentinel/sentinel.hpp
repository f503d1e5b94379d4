// SPDX-License-Identifier: Apache-2.0
// Sentinel (000; 002 chapter 4): what is used in one layer alone stays in fast memory, all else moves between
// intervals of layers, ahead of its use. What each rule of the papers became: docs/planners/sentinel.md.
#pragma once

#include "migration/migration_writer.hpp"

namespace terrace {

/// Options: sentinel/options.hpp. Below what Sentinel wants at least (002 section 4.4.5) kernels take the
/// place of layers and short-lived tensors move like others, unless the option `below` refuses.
///
/// `sentinel` has the papers' rules: intervals of equal length, and only what comes late is used in slow
/// memory. `sentinel+` is ours: intervals of unequal length, and use in slow memory wherever that is faster.
/// They differ in the values of the options `intervals` and `in_place` where none are given.
Result<Plan> plan_sentinel(const PlanRequest& request);
Result<Plan> plan_sentinel_plus(const PlanRequest& request);

namespace sentinel {

using migration::Case;
using migration::Cuts;

/// The intervals that the planner takes for a request, and how each begins with the answer that the option
/// `end` gives. Those whose kernels wait where `end` is `wait` are for a Trial.
struct Examination {
  Cuts cuts;
  std::vector<Case> cases;      ///< one more than cuts, for the step's end
  std::vector<Seconds> waited;  ///< by interval: its kernels, for migrations
  Bytes least;                  ///< fast memory that Sentinel wants (002 section 4.4.5)
};
Result<Examination> examine(const PlanRequest& request);

/// The request with what the papers do where it has no value of an option.
PlanRequest as_published(PlanRequest request);

}  // namespace sentinel
}  // namespace terrace

// Sentinel (000; 002 chapter 4): what is used in one layer alone stays in fast memory, all else moves between
// intervals of layers, ahead of its use. What each rule of the papers became: docs/planners/sentinel.md.
#pragma once

#include "migration/migration_writer.hpp"

namespace terrace {

/// Options: sentinel/options.hpp. Below what Sentinel wants at least (002 section 4.4.5) kernels take the
/// place of layers and short-lived tensors move like others, unless the option `below` refuses.
Result<Plan> plan_sentinel(const PlanRequest& request);

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

}  // namespace sentinel
}  // namespace terrace

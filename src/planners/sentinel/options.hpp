// SPDX-License-Identifier: Apache-2.0
// The options of the planner `sentinel`: every technique of 000 Fig. 11 can be switched off.
//
//   interval=auto|N            the layers of a migration interval; auto: chosen from the profile
//   intervals=unequal|equal    whether intervals may have different lengths
//   reserve=contiguous|on|off  whether short-lived tensors have their space before all others, in one piece
//   or
//                              wherever there is room
//   grouping=published|small|off
//                              which tensors of the same layers lie side by side and travel together: those
//                              of every size that are made within the step, small ones, or none
//   end=trial|wait|leave|leave:I,J,...
//                              what becomes of tensors that do not arrive in time: the kernels wait, or use
//                              them in slow memory; trial: whichever is predicted to be faster, tensor by
//                              tensor; a list names the intervals that leave, all others wait
//   order=accesses|use         which tensors are fetched first: the most accessed, or the next used
//   in_place=on|off            whether tensors may be used in slow memory though they would arrive in time
//   evict=room|use             whether tensors leave when their room is needed, or after their last use in an
//                              interval though there is room, as in the papers
//   below=plan|refuse          whether there is a plan below the least budget of 002 section 4.4.5
#pragma once

#include <cstdint>

#include "migration/migration_rules.hpp"
#include "migration/units.hpp"
#include "terrace/planner.hpp"

namespace terrace::sentinel {

using migration::FetchOrder;
using migration::Grouping;
using migration::IntervalEnd;
using migration::LateRule;

struct Options {
  std::uint32_t interval = 0;  ///< layers; 0: from the profile
  bool unequal = true;
  bool reserve = true;
  bool contiguous = false;  ///< the reserve
  Grouping grouping = Grouping::small;
  IntervalEnd end;
  FetchOrder order = FetchOrder::accesses;
  bool in_place = true;
  bool evict_after_use = false;
  bool refuse_below = false;
};

/// Fails with one sentence where an option or its value is not known.
Result<Options> parse_options(const PlanRequest& request);

}  // namespace terrace::sentinel

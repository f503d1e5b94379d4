// SPDX-License-Identifier: Apache-2.0
// What an outside planner is asked, and how its answer is read (docs/formats/record.md). Both are texts:
// whoever starts programs is elsewhere (outside_planner.hpp).
#pragma once

#include <string>
#include <string_view>

#include "terrace/planner.hpp"

namespace terrace {

/// A record without a plan, and what planners derive of it first: sizes of regions, uses with their next
/// ones.
std::string plan_question(const PlanRequest& request);

/// A plan of which everything but its instructions may be missing.
struct PlanAnswer {
  Plan plan;
  bool has_offsets = true;  ///< false: none has, and all are zero here
};

/// Fails where the text is no plan, and where some regions have offsets and others none. What is missing is
/// taken from the request.
Result<PlanAnswer> read_answer(std::string_view text, const PlanRequest& request);

}  // namespace terrace

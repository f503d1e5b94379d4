// SPDX-License-Identifier: Apache-2.0
// Planners that are programs of others: `exec:./mine` or `exec:python3 mine.py`. The question goes to the
// program's standard input and its plan comes from its standard output. It is trusted with nothing: the plan
// is verified before anybody looks at it.
#pragma once

#include <stop_token>
#include <string_view>

#include "terrace/planner.hpp"

namespace terrace {

/// Returns whether a planner's name is such a program.
bool is_outside_planner(std::string_view planner);

/// Whether there is a command behind `exec:`.
Result<void> check_outside_planner(std::string_view planner);

/// As make_plan. A program that leaves offsets to us is asked again, a few times, with as much less fast
/// memory as its regions could not be packed into. Fails with one sentence where the program cannot be
/// started, does not end well or is stopped, where it writes no plan, and with the violation where the plan
/// is not safe.
Result<Plan> make_outside_plan(std::string_view planner, const PlanRequest& request,
                               const std::stop_token& stop = {});

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// A planner as users name it, taken apart: `sentinel+reserve=off+interval=4`.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "terrace/planner.hpp"

namespace terrace {

struct PlannerChoice {
  const PlannerInfo* planner;
  std::map<std::string, std::string> options;
};

/// Fails with the closest names where there is no such planner or option; values are for the planner to read.
Result<PlannerChoice> choose_planner(std::string_view text);

}  // namespace terrace

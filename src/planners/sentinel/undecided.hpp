// What Sentinel leaves to real steps (002 section 4.4.4): in some intervals kernels wait for migrations, and
// only a step on the computer itself shows whether they should use the tensors in slow memory instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/planner.hpp"

namespace terrace::sentinel {

struct Undecided {
  std::vector<Seconds> waited;  ///< by interval: how long its kernels wait for migrations
  std::string planner;          ///< its name and options, in a fixed order
  std::string intervals;        ///< names these intervals, however they came about
};

/// Nothing where the planner leaves nothing open: it is not Sentinel, or its option `end` is given.
/// `planner` is a name as make_plan takes it.
std::optional<Undecided> find_undecided(std::string_view planner, const PlanRequest& request);

/// The plan with these answers, which a Trial gives. pre: find_undecided found something for the planner
Result<Plan> plan_with_end(std::string_view planner, std::string_view end, const PlanRequest& request);

}  // namespace terrace::sentinel

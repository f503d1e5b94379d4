// SPDX-License-Identifier: Apache-2.0
// `terrace compare`, in parts: what is asked, and the rows of a record.
#pragma once

#include <string>
#include <vector>

#include "cli/plan_file.hpp"
#include "cli/plan_report.hpp"

namespace terrace::cli {

struct CompareRequest : WorkloadOptions {
  std::vector<std::string> fast;      ///< none: those of the command, or what a record was planned for
  std::vector<std::string> planners;  ///< none: all
  double planner_seconds = kPlannerSeconds;
  bool machine_given = false;  ///< else a record's own
  bool real = false;
  std::string json;
};

std::vector<std::string> planners_of(const CompareRequest& request);

struct ComparedRecord {
  Workload workload;
  std::vector<PlanRow> rows;
};

/// The plan that a record holds beside those that planners make of its graph, with its times: on its machine
/// and within its budget, unless others are asked for.
ComparedRecord compare_with(const CompareRequest& request, Record record, ProgressLine& line);

}  // namespace terrace::cli

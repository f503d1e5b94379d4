// SPDX-License-Identifier: Apache-2.0
// The file that `verify` and `simulate` are given: a record, which needs nothing else, or a plan alone, with
// options that name the model and machine it was made for.
#pragma once

#include <optional>
#include <string>

#include "cli/workload_options.hpp"
#include "pipeline/replay.hpp"

namespace terrace::cli {

/// The options of commands that read a plan.
struct PlanFileOptions : WorkloadOptions {
  std::string plan, json;  ///< files; no `json`: tables are printed
  std::string fast;        ///< that it was planned for; only a plan alone whose kernels were split needs it
  bool machine_given = false;  ///< else a record's own
};
/// pre: `command` runs `ready_plan_file_options` before it reads the options
void add_plan_file_options(CLI::App& command, PlanFileOptions& options);
void ready_plan_file_options(const CLI::App& command, PlanFileOptions& options);

/// A plan on the machine it is to be looked at on.
struct PlanFile {
  std::string model;
  std::optional<std::int64_t> batch;
  Workload workload;
  Plan plan;
  std::optional<Profile> profile;  ///< of a record, on its own machine; none: nobody timed the kernels there
  std::string planned_for;         ///< the name of the record's machine; empty: it is the workload's
  std::vector<std::string> tiers;  ///< names of the tiers there, which are taken by their place
};

/// The record in a file, or nothing where the file holds something else. Throws BadInput where there is no
/// such file, or the record is none.
std::optional<Record> record_in(const std::string& path);
/// Throws BadInput where the machine that is asked for has fewer tiers than the record's.
Machine other_machine(const Record& record, const WorkloadOptions& options, ProgressLine& line);

/// Throws BadInput where the file holds no plan, or options do not go with what it holds.
PlanFile open_plan_file(const PlanFileOptions& options, ProgressLine& line);

}  // namespace terrace::cli

// SPDX-License-Identifier: Apache-2.0
// The options of terrace_plan and terrace_advise: a JSON object from outside, read and checked.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terrace/machine.hpp"
#include "terrace/progress.hpp"

namespace terrace::capi {

struct Options {
  std::string machine = "this";
  std::optional<Machine> given;  ///< a machine itself, instead of a name
  std::vector<std::string> slow;
  std::string planner;               ///< as the user wrote it; the first of the table where none was given
  std::string fast;                  ///< of a plan
  std::vector<std::string> budgets;  ///< of an advice
  std::optional<std::vector<Bytes>> budget;  ///< of each tier
  std::optional<double> seconds;
  double slowdown = 0.05;
  std::map<std::string, double> prices;
};

enum class OptionsOf { plan, advice };

/// Throws JsonError or ResultError with one sentence where the text is not what it should be. `text` may be
/// null: all defaults.
Options read_options(const char* text, OptionsOf what);

/// The machine that the options ask for. Throws ResultError where there is none.
Machine machine_for(const Options& options, const ProgressSink& progress);
/// A name, or a machine itself as a JSON object.
void set_machine(Options& options, const std::string& text);
/// A list of tier specs.
std::vector<std::string> read_specs(const char* text);

}  // namespace terrace::capi

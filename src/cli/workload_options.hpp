// SPDX-License-Identifier: Apache-2.0
// The options by which commands name what they work on: a model or a graph on a machine.
#pragma once

#include <string>
#include <vector>

#include "cli/model_choice.hpp"
#include "cli/progress.hpp"
#include "terrace/workload.hpp"

namespace CLI {
class App;
}

namespace terrace::cli {

struct WorkloadOptions : ModelChoice {
  unsigned threads = 0;          ///< 0: as many as this process can keep busy
  std::string machine = "this";  ///< or a preset, or a file
  std::vector<std::string> slow;
  std::string variants = "same-bits";  ///< of kernels, that plans choose from; or any

  /// `graph` and `line` are used as long as the request is.
  WorkloadRequest on(const Graph& graph, ProgressLine& line) const;
};

/// Returns what the progress of long work is shown on. It must outlive what is returned.
ProgressSink shown_on(ProgressLine& line);

enum class ModelIs { argument, option };
/// MODEL and what decides its graph.
void add_graph_options(CLI::App& command, ModelChoice& choice, ModelIs given = ModelIs::argument);
/// The same, and the threads that compute it.
void add_model_options(CLI::App& command, WorkloadOptions& options, ModelIs given);
void add_machine_options(CLI::App& command, WorkloadOptions& options);
void add_planner_option(CLI::App& command, std::string& planner);
/// How long a planner that is a program of the user's may take.
void add_planner_seconds_option(CLI::App& command, double& seconds);
inline constexpr double kPlannerSeconds = 300;

/// Returns what is wrong with the text of `--fast` or the name of a planner, before anything takes time; else
/// empty.
std::string wrong_fast_budget(const std::string& text);
std::string wrong_planner(const std::string& name);

}  // namespace terrace::cli

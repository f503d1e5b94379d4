// The options by which commands name what they work on: a model of the zoo on a machine.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/progress.hpp"
#include "terrace/models.hpp"
#include "terrace/workload.hpp"

namespace terrace::cli {

struct WorkloadOptions {
  std::string model;
  ModelOptions options;
  std::string optimizer;         ///< empty: the one the network was published with
  unsigned threads = 0;          ///< 0: as many as this process can keep busy
  std::string machine = "this";  ///< or a preset, or a file
  std::vector<std::string> slow;

  /// Throws BadInput where there is no such model or it makes no graph.
  Graph training_graph() const;
  /// `graph` and `line` are used as long as the request is.
  WorkloadRequest on(const Graph& graph, ProgressLine& line) const;
};

/// What the progress of long work is shown on. It must outlive what is returned.
ProgressSink shown_on(ProgressLine& line);

/// Of commands that read a plan, which does not hold the graph it is for.
struct PlanFileOptions : WorkloadOptions {
  std::string plan, json;  ///< files; no `json`: tables are printed
  std::string fast;        ///< that it was planned for; only a plan of split kernels needs it
};
void add_plan_file_options(CLI::App& command, PlanFileOptions& options);

enum class ModelIs { argument, option };
void add_model_options(CLI::App& command, WorkloadOptions& options, ModelIs given);
void add_machine_options(CLI::App& command, WorkloadOptions& options);
void add_planner_option(CLI::App& command, std::string& planner);

/// What is wrong with the text of `--fast` or the name of a planner, before anything takes time; else empty.
std::string wrong_fast_budget(const std::string& text);
std::string wrong_planner(const std::string& name);

}  // namespace terrace::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/workload_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "backends/processor.hpp"
#include "base/similar.hpp"
#include "cli/checks.hpp"
#include "cli/command.hpp"
#include "pipeline/fast_budget.hpp"
#include "record/outside_planner.hpp"
#include "terrace/planner.hpp"

namespace terrace::cli {

WorkloadRequest WorkloadOptions::on(const Graph& graph, ProgressLine& line) const {
  WorkloadRequest request{graph, threads, machine, slow, shown_on(line)};
  if (variants == "any") request.backend = expect(processor_backend(Variants::any));
  return request;
}

ProgressSink shown_on(ProgressLine& line) {
  return [&line](const std::string& text) { line.show(text); };
}

void add_graph_options(CLI::App& command, ModelChoice& choice, ModelIs given) {
  const bool argument = given == ModelIs::argument;
  command
      .add_option(argument ? "model" : "--model", choice.model,
                  "Name of the network (see terrace models), or a file that terrace graph wrote")
      ->type_name("MODEL|FILE")
      ->required(argument);
  command.add_option("--batch", choice.options.batch, "Samples per step (default: the model's own)")
      ->type_name("N")
      ->check(whole_number(std::int64_t{1}));
  command.add_option("--sequence", choice.options.sequence, "Tokens in a row, for models of sequences")
      ->type_name("N")
      ->check(whole_number(std::int64_t{1}));
  command
      .add_option("--micro-batches", choice.options.micro_batches,
                  "Equal parts that a batch is worked on in, one after the other (default: 1)")
      ->type_name("N")
      ->check(whole_number(std::int64_t{1}));
  command.add_option("--optimizer", choice.optimizer, "sgd or adam (default: the model's own)")
      ->type_name("NAME")
      ->check(one_of({"sgd", "adam"}));
}

void add_model_options(CLI::App& command, WorkloadOptions& options, ModelIs given) {
  add_graph_options(command, options, given);
  command
      .add_option("--threads", options.threads, "Threads to compute with (default: all this process may use)")
      ->type_name("N")
      ->check(whole_number(1U, 1024U));
}

void add_machine_options(CLI::App& command, WorkloadOptions& options) {
  command
      .add_option(
          "--machine", options.machine,
          "this (default: this computer), a machine of the papers (terrace calibrate --list), or a file")
      ->type_name("NAME|FILE");
  command
      .add_option(
          "--slow", options.slow,
          "A tier of this computer beside memory; may stand several times, the fastest first (default: a "
          "file in the cache folder)")
      ->type_name("SPEC")
      ->expected(1)
      ->take_all();
  command
      .add_option(
          "--variants", options.variants,
          "Kernels that plans choose from: same-bits (default), or any: direct convolutions, too, which "
          "need no workspace; they round otherwise, so that --same-bits compares with the plan's, and "
          "neither are kernels split nor plans changed")
      ->type_name("NAME")
      ->check(one_of({"same-bits", "any"}));
}

std::string wrong_fast_budget(const std::string& text) {
  // So few bytes hold nothing: whoever leaves out the unit means percent.
  double number = 0;
  if (reads_as(text, number) && number > 0 && number <= 1000)
    return fmt::format("'{0}' is {0} bytes: did you mean {0}%? An amount has a unit, such as {0}MiB", text);
  // Any peak does: it is for percentages, whose form is checked.
  const auto budget = parse_fast_budget(text, Bytes{1U << 30U});
  return budget ? "" : budget.error().message;
}

namespace {

std::vector<std::string_view> planner_names() {
  std::vector<std::string_view> names;
  for (const PlannerInfo& info : planners()) names.push_back(info.name);
  return names;
}

}  // namespace

std::string wrong_planner(const std::string& name) {
  const auto known = is_outside_planner(name) ? check_outside_planner(name) : check_planner(name);
  return known ? "" : known.error().message;
}

void add_planner_option(CLI::App& command, std::string& planner) {
  command
      .add_option(
          "--planner", planner,
          fmt::format("Who decides where tensors live: {} (default: {}); options behind a plus, as in "
                      "sentinel+interval=4; or exec:PROGRAM, which asks a program of yours",
                      enumerated(planner_names(), "or"), planners().front().name))
      ->type_name("NAME")
      ->check(wrong_planner);
  // Callbacks run in the options' order of definition, so the planner is known.
  command
      .add_option_function<std::string>(
          "--solver",
          [&planner](const std::string& solver) {
            if (!planner.starts_with("autotm-"))
              throw CLI::ValidationError("--solver", "is for planners whose names begin with autotm-");
            planner += "+solver=" + solver;
          },
          "Who solves the program of an autotm planner: fast (by prices) or cbc (exactly)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"fast", "cbc"}));
}

void add_planner_seconds_option(CLI::App& command, double& seconds) {
  command
      .add_option("--planner-seconds", seconds,
                  fmt::format("How long a planner exec:PROGRAM may take (default: {:.0f})", kPlannerSeconds))
      ->type_name("S")
      ->check(positive_number());
}

}  // namespace terrace::cli

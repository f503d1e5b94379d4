// SPDX-License-Identifier: Apache-2.0
#include "terrace/plan.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/replace_file.hpp"
#include "cli/command.hpp"
#include "cli/deadline.hpp"
#include "cli/interrupt.hpp"
#include "cli/json_file.hpp"
#include "cli/plan_report.hpp"
#include "terrace/record.hpp"

namespace terrace::cli {
namespace {

struct PlanningRequest : WorkloadOptions {
  std::string fast, planner;  ///< empty: all of the machine's, the first of the list
  std::string output, json;   ///< files; empty: none
  bool print = false;
  double planner_seconds = kPlannerSeconds;
};

struct Made {
  Workload workload;
  Profile profile;
  std::vector<Bytes> budget;
  PlanRow row;

  bool interrupted = false;  ///< the plan is the best until then

  const Planned& planned() const { return *row.planned; }
};

/// Plans. An interrupt ends a planner that learns with its best plan so far; all others it ends as always.
PlanRow plan_until_interrupted(const Made& made, const std::string& planner, double seconds,
                               ProgressLine& line, bool& interrupted) {
  const Deadline deadline(seconds);
  if (!learns(planner))
    return plan_row(made.workload, made.profile, made.budget, planner, deadline.token(), shown_on(line));
  const Interrupt interrupt;
  std::stop_source stop;
  const std::stop_callback over(deadline.token(), [&] { stop.request_stop(); });
  const auto report = [&](const std::string& words) {
    line.show(words);
    if (interrupt.requested()) stop.request_stop();
  };
  PlanRow row = plan_row(made.workload, made.profile, made.budget, planner, stop.get_token(), report);
  interrupted = interrupt.requested();
  return row;
}

Made make(const PlanningRequest& request, ProgressLine& line) {
  line.show(fmt::format("building the graph of {}", request.model));
  const Graph graph = request.training_graph();
  const WorkloadRequest asked = request.on(graph, line);
  Workload workload = expect(prepare(asked));
  const auto budget = expect(budget_of(workload, request.fast));
  workload = expect(fit(asked, std::move(workload), budget[0]));
  Profile profile = expect(profile_of(workload, budget, shown_on(line)));
  const std::string planner =
      request.planner.empty() ? std::string(planners().front().name) : request.planner;
  line.show(fmt::format("planning {} kernels with {}", workload.graph().kernels.size(), planner));
  Made made{std::move(workload), std::move(profile), budget, {}};
  made.row = plan_until_interrupted(made, planner, request.planner_seconds, line, made.interrupted);
  if (!made.row.planned) throw BadInput(made.row.reason);
  return made;
}

/// All that is needed to look at the plan again.
Record record_of(const PlanningRequest& request, const Made& made) {
  Record record;
  record.model = request.model;
  record.batch = request.batch();
  record.graph = made.workload.graph();
  record.machine = made.workload.machine;
  record.profile = made.profile;
  record.budget = made.budget;
  record.peak = made.workload.peak;
  record.split_kernels = made.workload.split_kernels;
  record.plan = made.planned().plan.plan();
  return record;
}

/// `brg:avx512_core for 60 kernels, gemm:jit for 12`
std::string variants_text(const std::map<std::string, std::size_t>& variants) {
  std::string text;
  for (const auto& [name, kernels] : variants) {
    text += text.empty() ? fmt::format("{} for {} kernels", name, kernels)
                         : fmt::format(", {} for {}", name, kernels);
  }
  return text;
}

void print_summary(const PlanningRequest& request, const Made& made) {
  const Machine& machine = made.workload.machine;
  const Plan& plan = made.planned().plan.plan();
  const LeastBudget& least = made.planned().least;
  const auto row = [](std::string_view name, const std::string& value) {
    fmt::print("{:<14} {}\n", name, value);
  };
  row("plan", fmt::format("{} on {}, by {}: {} instructions, verified", request.title(), machine.name,
                          plan.planner, plan.instructions.size()));
  row("times",
      made.profile.is_measured() ? "of kernels measured on this computer" : "estimated from the machine");
  row("graph peak", readable(made.workload.peak));
  row("budget", fmt::format("{} of {}; the least is {}{}", readable(made.row.fast), machine.tiers[0].name,
                            readable(least.bytes),
                            least.kernel ? ", for " + made.workload.graph()[least.kernel].name : ""));
  if (made.row.split_kernels > 0) row("split", split_text(made.row.split_kernels, made.row.fast));
  row("needs", peak_text(machine, plan.budget));
  if (!made.row.variants.empty()) row("variants", variants_text(made.row.variants));
  row("step", fmt::format("{:.4f} s, {} above the bound of {:.4f} s", plan.prediction.step.count(),
                          gap_text(plan.prediction.gap()), plan.prediction.bound.count()));
  if (!plan.remark.empty()) row("remark", plan.remark);
  row("fast only", fmt::format("{:.4f} s", made.row.fast_only.count()));
  if (made.row.slow_only) row("slow only", fmt::format("{:.4f} s", made.row.slow_only->count()));
  row("moves", moved_text(machine, plan.prediction.moved));
  row("exposed", fmt::format("{:.4f} s", plan.prediction.exposed.count()));
  row("planned in", fmt::format("{:.3f} s", made.planned().planning.count()));
}

void run_plan(const PlanningRequest& request) {
  if (!request.output.empty()) expect(check_replaceable(request.output));
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  ProgressLine line;
  const Made made = make(request, line);
  line.clear();
  const Plan& plan = made.planned().plan.plan();
  if (!request.output.empty()) write_record(record_of(request, made), request.output);
  if (json) json->write(to_json(request, made.workload, made.row));
  if (request.print) fmt::print("{}", to_text(plan, made.workload.graph(), made.workload.machine));
  if (!json && !request.print) print_summary(request, made);
  if (made.interrupted) throw Interrupted();
}

}  // namespace

void add_plan(CLI::App& app) {
  auto request = std::make_shared<PlanningRequest>();
  CLI::App* command = app.add_subcommand(
      "plan", "Plans a model's training step: how fast it would be, and how near to the best");
  add_model_options(*command, *request, ModelIs::argument);
  add_machine_options(*command, *request);
  command
      ->add_option(
          "--fast", request->fast,
          "Fast memory to plan for: an amount, or a percentage of the graph's peak (default: all of it)")
      ->type_name("SIZE|PCT%")
      ->check(wrong_fast_budget);
  add_planner_option(*command, request->planner);
  add_planner_seconds_option(*command, request->planner_seconds);
  command
      ->add_option(
          "-o,--output", request->output,
          "Write a record to this file: all that verify, simulate and compare need to look at the plan again")
      ->type_name("FILE");
  command->add_flag("--print", request->print, "Print the plan itself, one instruction a line");
  command->add_option("--json", request->json, "Write the result to this file instead of printing a table")
      ->type_name("FILE");
  command->callback([request] { run_plan(*request); });
}

}  // namespace terrace::cli

#include "terrace/simulate.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/plan_report.hpp"

namespace terrace::cli {
namespace {

using Request = PlanFileOptions;

struct Simulated {
  Workload workload;
  Timeline timeline;
  Seconds bound{0};
  double gap() const { return bound.count() > 0 ? timeline.step / bound - 1 : 0; }
};

/// The machine may be another than the plan's, as long as the plan is safe on it.
Simulated replay(const Request& request, const Plan& plan, ProgressLine& line) {
  const Graph graph = request.training_graph();
  Workload workload = expect(prepare_for(plan, request.on(graph, line), request.fast));
  const auto found = violations(workload.graph(), workload.machine, plan, 1);
  if (!found.empty()) {
    throw BadInput(fmt::format("{} is not safe on machine {}: {}", request.plan, workload.machine.name,
                               to_text(found.front(), workload.graph(), workload.machine, plan)));
  }
  const Profile profile = expect(profile_of(workload, plan.budget, shown_on(line)));
  line.show(fmt::format("simulating {} instructions", plan.instructions.size()));
  Timeline timeline = simulate(workload.graph(), workload.machine, profile, plan);
  const Seconds bound = step_bound({workload.graph(), workload.machine, profile, plan.budget}).step;
  return {std::move(workload), std::move(timeline), bound};
}

nlohmann::json to_json(const Request& request, const Plan& plan, const Simulated& simulated) {
  const Machine& machine = simulated.workload.machine;
  const Timeline& timeline = simulated.timeline;
  return {{"plan", request.plan},
          {"model", request.model},
          {"batch", request.batch_json()},
          {"machine", machine.name},
          {"planner", plan.planner},
          {"predicted_step_seconds", timeline.step.count()},
          {"planned_step_seconds", plan.prediction.step.count()},
          {"bound_seconds", simulated.bound.count()},
          {"gap", simulated.gap()},
          {"moved_bytes", moved_json(machine, timeline.moved)},
          {"exposed_seconds", timeline.exposed.count()},
          {"peak_bytes", peak_json(machine, timeline.peak)}};
}

void print(const Request& request, const Plan& plan, const Simulated& simulated) {
  const Machine& machine = simulated.workload.machine;
  const Timeline& timeline = simulated.timeline;
  const auto row = [](std::string_view name, const std::string& value) {
    fmt::print("{:<14} {}\n", name, value);
  };
  row("plan",
      fmt::format("{}, by {} for {}, on {}", request.plan, plan.planner, request.model, machine.name));
  row("step", fmt::format("{:.4f} s, {} above the bound of {:.4f} s", timeline.step.count(),
                          gap_text(simulated.gap()), simulated.bound.count()));
  row("planned", fmt::format("{:.4f} s", plan.prediction.step.count()));
  row("moves", moved_text(machine, timeline.moved));
  row("exposed", fmt::format("{:.4f} s", timeline.exposed.count()));
  row("peak", peak_text(machine, timeline.peak));
}

void run_simulate(const Request& request) {
  const Plan plan = expect(read_plan(request.plan));
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  ProgressLine line;
  const Simulated simulated = replay(request, plan, line);
  line.clear();
  json ? json->write(to_json(request, plan, simulated)) : print(request, plan, simulated);
}

}  // namespace

void add_simulate(CLI::App& app) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("simulate", "Replays a plan on clocks, on its machine or another");
  add_plan_file_options(*command, *request);
  command->callback([request] { run_simulate(*request); });
}

}  // namespace terrace::cli

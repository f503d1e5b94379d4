// SPDX-License-Identifier: Apache-2.0
#include "terrace/simulate.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/plan_file.hpp"
#include "cli/plan_report.hpp"

namespace terrace::cli {
namespace {

using SimulateRequest = PlanFileOptions;

struct Simulated {
  PlanFile file;
  Timeline timeline;
  Seconds bound{0};
  std::string times;  ///< where those of kernels come from
  const Machine& machine() const { return file.workload.machine; }
  double gap() const { return bound.count() > 0 ? timeline.step / bound - 1 : 0; }
};

/// Where nobody timed the kernels on the machine, they are estimated: a record of another machine is replayed
/// there without anything being run.
Profile profile_for(const PlanFile& file, std::string& times, ProgressLine& line) {
  const Workload& workload = file.workload;
  const bool moved = !file.planned_for.empty();
  Profile profile = file.profile ? *file.profile
                    : moved      ? estimate(workload.graph(), workload.machine)
                                 : expect(profile_of(workload, file.plan.budget, shown_on(line)));
  times = fmt::format("{}{}", profile.is_measured() ? "measured" : "estimated",
                      file.profile ? ", as recorded" : "");
  if (moved) times += fmt::format(" for {}: the record's are of {}", workload.machine.name, file.planned_for);
  return profile;
}

/// The machine may be another than the plan's, as long as the plan is safe on it.
Simulated replay(const SimulateRequest& request, ProgressLine& line) {
  Simulated made{open_plan_file(request, line), {}, {}, {}};
  const Workload& workload = made.file.workload;
  const Plan& plan = made.file.plan;
  const auto found = violations(workload.graph(), workload.machine, plan, 1);
  if (!found.empty()) {
    throw BadInput(fmt::format("{} is not safe on machine {}: {}", request.plan, workload.machine.name,
                               to_text(found.front(), workload.graph(), workload.machine, plan)));
  }
  const Profile profile = profile_for(made.file, made.times, line);
  line.show(fmt::format("simulating {} instructions", plan.instructions.size()));
  made.timeline = simulate(workload.graph(), workload.machine, profile, plan);
  made.bound = step_bound({workload.graph(), workload.machine, profile, plan.budget}).step;
  return made;
}

/// `dram as local, optane as remote`
std::string tiers_text(const Simulated& simulated) {
  std::string text;
  for (std::size_t i = 0; i < simulated.file.tiers.size(); ++i) {
    text += fmt::format("{}{} as {}", i == 0 ? "" : ", ", simulated.file.tiers[i],
                        simulated.machine().tiers[i].name);
  }
  return text;
}

nlohmann::json simulated_json(const SimulateRequest& request, const Simulated& simulated) {
  const PlanFile& file = simulated.file;
  const Timeline& timeline = simulated.timeline;
  nlohmann::json json = {{"plan", request.plan},
                         {"model", file.model},
                         {"batch", file.batch ? nlohmann::json(*file.batch) : nlohmann::json()},
                         {"machine", simulated.machine().name},
                         {"planner", file.plan.planner},
                         {"times", simulated.times},
                         {"predicted_step_seconds", timeline.step.count()},
                         {"planned_step_seconds", file.plan.prediction.step.count()},
                         {"bound_seconds", simulated.bound.count()},
                         {"gap", simulated.gap()},
                         {"moved_bytes", moved_json(simulated.machine(), timeline.moved)},
                         {"exposed_seconds", timeline.exposed.count()},
                         {"peak_bytes", peak_json(simulated.machine(), timeline.peak)}};
  if (!file.planned_for.empty()) json["planned_for"] = file.planned_for;
  return json;
}

void print_simulated(const SimulateRequest& request, const Simulated& simulated) {
  const Machine& machine = simulated.machine();
  const Timeline& timeline = simulated.timeline;
  const PlanFile& file = simulated.file;
  const auto row = [](std::string_view name, const std::string& value) {
    fmt::print("{:<14} {}\n", name, value);
  };
  row("plan",
      fmt::format("{}, by {} for {}, on {}", request.plan, file.plan.planner, file.model, machine.name));
  row("times", simulated.times);
  if (!file.planned_for.empty()) row("tiers", tiers_text(simulated));
  row("step", fmt::format("{:.4f} s, {} above the bound of {:.4f} s", timeline.step.count(),
                          gap_text(simulated.gap()), simulated.bound.count()));
  row("planned", fmt::format("{:.4f} s{}", file.plan.prediction.step.count(),
                             file.planned_for.empty() ? "" : " on " + file.planned_for));
  row("moves", moved_text(machine, timeline.moved));
  row("exposed", fmt::format("{:.4f} s", timeline.exposed.count()));
  row("peak", peak_text(machine, timeline.peak));
}

void run_simulate(const SimulateRequest& request) {
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  ProgressLine line;
  const Simulated simulated = replay(request, line);
  line.clear();
  json ? json->write(simulated_json(request, simulated)) : print_simulated(request, simulated);
}

}  // namespace

void add_simulate(CLI::App& app) {
  auto request = std::make_shared<SimulateRequest>();
  CLI::App* command = app.add_subcommand("simulate", "Replays a plan on clocks, on its machine or another");
  add_plan_file_options(*command, *request);
  command->callback([request, command] {
    ready_plan_file_options(*command, *request);
    run_simulate(*request);
  });
}

}  // namespace terrace::cli

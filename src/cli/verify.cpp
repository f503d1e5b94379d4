#include "terrace/verify.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/workload_options.hpp"

namespace terrace::cli {
namespace {

using Request = PlanFileOptions;

Workload workload_of(const Request& request, const Plan& plan, ProgressLine& line) {
  const Graph graph = request.training_graph();
  Workload workload = expect(prepare_for(plan, request.on(graph, line), request.fast));
  if (const std::string here = fingerprint(workload.machine); here != plan.machine) {
    throw BadInput(
        fmt::format("{} was made for another machine (fingerprint {}) than {} ({}): name its own with "
                    "--machine and --slow, "
                    "or plan again",
                    request.plan, plan.machine, workload.machine.name, here));
  }
  return workload;
}

std::string_view name_of(Moment moment) {
  switch (moment) {
    case Moment::start:
      return "start";
    case Moment::instruction:
      return "instruction";
    case Moment::end:
      return "end";
  }
  return "";
}

nlohmann::json to_json(const Request& request, const Workload& workload, const Plan& plan,
                       const std::vector<Violation>& found) {
  auto list = nlohmann::json::array();
  for (const Violation& violation : found) {
    list.push_back({{"moment", name_of(violation.moment)},
                    {"instruction", violation.instruction},
                    {"reason", violation.reason}});
  }
  return {{"plan", request.plan},          {"model", request.model},
          {"batch", request.batch_json()}, {"machine", workload.machine.name},
          {"planner", plan.planner},       {"instructions", plan.instructions.size()},
          {"safe", found.empty()},         {"violations", list}};
}

void run_verify(const Request& request) {
  const Plan plan = expect(read_plan(request.plan));
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  ProgressLine line;
  const Workload workload = workload_of(request, plan, line);
  line.show("verifying");
  const auto found = violations(workload.graph(), workload.machine, plan);
  line.clear();
  if (json) {
    json->write(to_json(request, workload, plan, found));
  } else {
    for (const Violation& violation : found)
      fmt::print("{}\n", to_text(violation, workload.graph(), workload.machine, plan));
    if (found.empty()) {
      fmt::print("safe: all {} instructions of {}, by {} for {} on {}\n", plan.instructions.size(),
                 request.plan, plan.planner, request.model, workload.machine.name);
    }
  }
  if (!found.empty())
    throw std::runtime_error(fmt::format("{} is not safe: {} violations", request.plan, found.size()));
}

}  // namespace

void add_verify(CLI::App& app) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("verify", "Proves a plan safe, or lists what is wrong with it");
  add_plan_file_options(*command, *request);
  command->callback([request] { run_verify(*request); });
}

}  // namespace terrace::cli

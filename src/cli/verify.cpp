// SPDX-License-Identifier: Apache-2.0
#include "terrace/verify.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/plan_file.hpp"
#include "pipeline/plan_row.hpp"

namespace terrace::cli {
namespace {

using VerifyRequest = PlanFileOptions;

/// What a plan says of its machine is true where a record holds both.
void require_its_machine(const VerifyRequest& request, const PlanFile& file) {
  const std::string here = fingerprint(file.workload.machine);
  if (here == file.plan.machine) return;
  throw BadInput(
      fmt::format("{} was made for another machine (fingerprint {}) than {} ({}): name its own with "
                  "--machine and --slow, or plan again",
                  request.plan, file.plan.machine, file.workload.machine.name, here));
}

nlohmann::json verified_json(const VerifyRequest& request, const PlanFile& file,
                             const std::vector<Violation>& found) {
  return {{"plan", request.plan},
          {"model", file.model},
          {"batch", file.batch ? nlohmann::json(*file.batch) : nlohmann::json()},
          {"machine", file.workload.machine.name},
          {"planner", file.plan.planner},
          {"instructions", file.plan.instructions.size()},
          {"safe", found.empty()},
          {"violations", violations_json(found)}};
}

void run_verify(const VerifyRequest& request) {
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  ProgressLine line;
  const PlanFile file = open_plan_file(request, line);
  require_its_machine(request, file);
  const Plan& plan = file.plan;
  const Workload& workload = file.workload;
  line.show("verifying");
  const auto found = violations(workload.graph(), workload.machine, plan);
  line.clear();
  if (json) {
    json->write(verified_json(request, file, found));
  } else {
    for (const Violation& violation : found)
      fmt::print("{}\n", to_text(violation, workload.graph(), workload.machine, plan));
    if (found.empty()) {
      fmt::print("safe: all {} instructions of {}, by {} for {} on {}\n", plan.instructions.size(),
                 request.plan, plan.planner, file.model, workload.machine.name);
    }
  }
  if (!found.empty())
    throw std::runtime_error(fmt::format("{} is not safe: {} violations", request.plan, found.size()));
}

}  // namespace

void add_verify(CLI::App& app) {
  auto request = std::make_shared<VerifyRequest>();
  CLI::App* command = app.add_subcommand("verify", "Proves a plan safe, or lists what is wrong with it");
  add_plan_file_options(*command, *request);
  command->callback([request, command] {
    ready_plan_file_options(*command, *request);
    run_verify(*request);
  });
}

}  // namespace terrace::cli

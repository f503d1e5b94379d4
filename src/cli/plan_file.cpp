// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_file.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/text_file.hpp"
#include "cli/command.hpp"
#include "record/json_parts.hpp"
#include "terrace/plan_file.hpp"

namespace terrace::cli {
namespace {

/// Looks at no more than the key `format`.
bool is_record(std::string_view text) {
  const auto parts = json_parts(text);
  if (!parts) return false;
  for (const JsonPart& part : *parts) {
    if (part.key == "format") return part.value == "\"terrace-record\"";
  }
  return false;
}

void refuse_options_of_plans(const PlanFileOptions& options) {
  const auto refuse = [&](const char* option) {
    throw BadInput(
        fmt::format("{} is a record, which holds its graph and budget: leave out {}", options.plan, option));
  };
  if (!options.model.empty()) refuse("--model");
  if (options.options.batch) refuse("--batch");
  if (options.options.sequence) refuse("--sequence");
  if (options.options.micro_batches != 1) refuse("--micro-batches");
  if (!options.optimizer.empty()) refuse("--optimizer");
  if (!options.fast.empty()) refuse("--fast");
}

PlanFile from_record(Record record, const PlanFileOptions& options, ProgressLine& line) {
  refuse_options_of_plans(options);
  if (!record.plan) throw BadInput(fmt::format("{} is a record without a plan: plan first", options.plan));
  PlanFile file{record.model, record.batch, workload_of(record), *record.plan, record.profile, {}, {}};
  if (!options.machine_given) return file;
  Machine machine = other_machine(record, options, line);
  if (fingerprint(machine) == fingerprint(record.machine)) return file;
  file.plan = expect(moved_to(record, machine));
  file.planned_for = record.machine.name;
  for (const MachineTier& tier : record.machine.tiers) file.tiers.push_back(tier.name);
  file.workload.machine = std::move(machine);
  file.profile.reset();
  return file;
}

}  // namespace

std::optional<Record> record_in(const std::string& path) {
  const std::string text = expect(read_text(path));
  if (!is_record(text)) return std::nullopt;
  auto record = record_from_json(text);
  if (!record) throw BadInput(fmt::format("{}: {}", path, record.error().message));
  return *std::move(record);
}

Machine other_machine(const Record& record, const WorkloadOptions& options, ProgressLine& line) {
  Machine machine = expect(machine_of(options.on(record.graph, line)));
  expect(has_tiers_for(record, machine));
  return machine;
}

PlanFile open_plan_file(const PlanFileOptions& options, ProgressLine& line) {
  line.show(fmt::format("reading {}", options.plan));
  if (auto record = record_in(options.plan)) return from_record(*std::move(record), options, line);
  Plan plan = expect(read_plan(options.plan));
  if (options.model.empty()) {
    throw BadInput(fmt::format("{} is a plan alone, so --model is required, and all else it was made with",
                               options.plan));
  }
  const Graph graph = options.training_graph();
  Workload workload = expect(prepare_for(plan, options.on(graph, line), options.fast));
  return {options.model, options.batch(), std::move(workload), std::move(plan), std::nullopt, {}, {}};
}

void add_plan_file_options(CLI::App& command, PlanFileOptions& options) {
  command.add_option("record", options.plan, "A file that terrace plan -o wrote")
      ->type_name("RECORD")
      ->required();
  add_model_options(command, options, ModelIs::option);
  add_machine_options(command, options);
  command
      .add_option(
          "--fast", options.fast,
          "Of a plan alone: fast memory that it was planned for, where kernels were split to fit in it")
      ->type_name("SIZE|PCT%")
      ->check(wrong_fast_budget);
  command.add_option("--json", options.json, "Write the result to this file instead of printing it")
      ->type_name("FILE");
}

void ready_plan_file_options(const CLI::App& command, PlanFileOptions& options) {
  options.machine_given = command.count("--machine") > 0;
}

}  // namespace terrace::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/compare.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command.hpp"
#include "cli/deadline.hpp"
#include "cli/json_file.hpp"
#include "cli/plan_file.hpp"
#include "cli/table.hpp"
#include "terrace/error.hpp"
#include "train/synthetic_data.hpp"

namespace terrace::cli {
namespace {

constexpr int kRealSteps = 3;
const std::vector<std::string> kDefaultFast{"10%", "20%", "40%"};

/// The first step touches memory and code for the first time, and does not count.
std::vector<double> real_steps(const Workload& workload, const VerifiedPlan& plan,
                               const ProgressSink& progress) {
  Trainer trainer = expect(Trainer::start(workload.program, plan, workload.machine, {}));
  SyntheticData data(workload.graph(), 0);
  std::vector<double> seconds;
  for (std::uint64_t step = 0; step <= kRealSteps; ++step) {
    progress(fmt::format("{}: step {}/{}", plan->planner, step, kRealSteps));
    data.fill(step, trainer);
    const auto start = std::chrono::steady_clock::now();
    trainer.step();
    if (step > 0) seconds.push_back(Seconds(std::chrono::steady_clock::now() - start).count());
  }
  return seconds;
}

void run_real(const Workload& workload, PlanRow& row, const ProgressSink& progress) try {
  if (row.planned) row.measured_steps = real_steps(workload, row.planned->plan, progress);
} catch (const EnvironmentError& error) {
  row.reason = error.what();
} catch (const BadInput& error) {
  row.reason = error.what();
}

/// A budget that none of them can work with is told in their rows.
std::vector<PlanRow> rows_of(const CompareRequest& request, const WorkloadRequest& asked,
                             const Workload& whole, const std::string& fast) {
  const ProgressSink& progress = asked.progress;
  const auto budget = expect(budget_of(whole, fast));
  const Workload workload = expect(fit(asked, whole, budget[0]));
  const auto profile = profile_of(workload, budget, progress);
  std::vector<PlanRow> rows;
  for (const std::string& planner : planners_of(request)) {
    progress(fmt::format("{} of fast memory: planning with {}", fast, planner));
    if (!profile) {
      rows.push_back(refused_row(workload, budget[0], planner, profile.error().message));
      continue;
    }
    const Deadline deadline(request.planner_seconds);
    rows.push_back(plan_row(workload, *profile, budget, planner, deadline.token()));
    if (request.real) run_real(workload, rows.back(), progress);
  }
  return rows;
}

std::vector<std::string> cells(const CompareRequest& request, const Workload& workload, const PlanRow& row) {
  std::vector<std::string> cells{readable(row.fast), row.planner};
  if (!row.planned) {
    cells.resize(request.real ? 8 : 7, "-");
    cells.push_back(row.reason);
    return cells;
  }
  const Prediction& predicted = row.planned->plan->prediction;
  Bytes moved{0};
  for (const Traffic& traffic : predicted.moved) moved += traffic.bytes;
  cells.push_back(fmt::format("{:.4f}", predicted.step.count()));
  if (request.real) {
    cells.push_back(row.measured_steps.empty() ? "-"
                                               : fmt::format("{:.4f}", median_or_zero(row.measured_steps)));
  }
  cells.insert(cells.end(),
               {fmt::format("{:.4f}", predicted.bound.count()), gap_text(predicted.gap()), readable(moved),
                fmt::format("{:.4f}", predicted.exposed.count()),
                row.reason.empty() ? peak_text(workload.machine, row.planned->plan->budget) : row.reason});
  return cells;
}

/// Once for every budget in which kernels had to be split.
void print_splits(const std::vector<PlanRow>& rows) {
  std::set<Bytes> told;
  for (const PlanRow& row : rows) {
    if (row.planned && row.split_kernels > 0 && told.insert(row.fast).second)
      fmt::print("{}{}\n", told.size() == 1 ? "\n" : "", split_text(row.split_kernels, row.fast));
  }
}

void print(const CompareRequest& request, const std::string& title, const Workload& workload,
           const std::vector<PlanRow>& rows) {
  using Align = Table::Align;
  fmt::print("{} on {}: a peak of {}, the least budget {}\n\n", title, workload.machine.name,
             readable(workload.peak), readable(least_budget(workload.graph(), workload.machine).bytes));
  std::vector<Table::Column> columns{{"fast", Align::right}, {"planner"}, {"step s", Align::right}};
  if (request.real) columns.push_back({"measured s", Align::right});
  for (const char* figure : {"bound s", "gap", "moved", "exposed s"})
    columns.push_back({figure, Align::right});
  columns.push_back({"needs, or why there is none"});
  Table table(std::move(columns));
  for (const PlanRow& row : rows) table.add(cells(request, workload, row));
  table.print();
  print_splits(rows);
}

void tell(const CompareRequest& request, const ModelChoice& model, const Workload& workload,
          const std::vector<PlanRow>& rows, JsonFile* json) {
  if (json == nullptr) return print(request, model.title(), workload, rows);
  auto list = nlohmann::json::array();
  for (const PlanRow& row : rows) list.push_back(to_json(model, workload, row));
  json->write({{"rows", list}});
}

void require_here(const CompareRequest& request, const Workload& workload) {
  if (!request.real || workload.here) return;
  throw BadInput(fmt::format("--real needs this computer, and machine {} is another: leave out --machine",
                             workload.machine.name));
}

void compare_record(const CompareRequest& request, Record record, JsonFile* json, ProgressLine& line) {
  if (request.real) throw BadInput("--real needs a model: a record is compared on clocks only");
  ModelChoice model;
  model.model = record.model;
  model.options.batch = record.batch;
  const ComparedRecord compared = compare_with(request, std::move(record), line);
  line.clear();
  tell(request, model, compared.workload, compared.rows, json);
}

void run_compare(CompareRequest request) {
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  ProgressLine line;
  line.show(fmt::format("building the graph of {}", request.model));
  if (request.is_file()) {
    if (auto record = record_in(request.model))
      return compare_record(request, *std::move(record), json.get(), line);
  }
  if (request.fast.empty()) request.fast = kDefaultFast;
  const Graph graph = request.training_graph();
  const WorkloadRequest asked = request.on(graph, line);
  const Workload workload = expect(prepare(asked));
  require_here(request, workload);
  std::vector<PlanRow> rows;
  for (const std::string& fast : request.fast) {
    auto more = rows_of(request, asked, workload, fast);
    std::move(more.begin(), more.end(), std::back_inserter(rows));
  }
  line.clear();
  tell(request, request, workload, rows, json.get());
}

}  // namespace

void add_compare(CLI::App& app) {
  auto request = std::make_shared<CompareRequest>();
  CLI::App* command = app.add_subcommand("compare", "Puts planners and budgets side by side in one table");
  add_model_options(*command, *request, ModelIs::argument);
  add_machine_options(*command, *request);
  command
      ->add_option(
          "--fast", request->fast,
          "Budgets of fast memory, amounts or percentages of the graph's peak (default: 10%,20%,40%; of a "
          "record: its own)")
      ->type_name("SIZE|PCT%,...")
      ->delimiter(',')
      ->check(wrong_fast_budget);
  command
      ->add_option("--planners", request->planners, "Planners to compare (default: all of terrace planners)")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->check(wrong_planner);
  command->add_flag("--real", request->real,
                    fmt::format("Also carry out {} steps of each plan, after one to warm up", kRealSteps));
  command->add_option("--json", request->json, "Write the result to this file instead of printing a table")
      ->type_name("FILE");
  add_planner_seconds_option(*command, request->planner_seconds);
  command->callback([request, command] {
    request->machine_given = command->count("--machine") > 0;
    run_compare(*request);
  });
}

}  // namespace terrace::cli

// SPDX-License-Identifier: Apache-2.0
#include "pages/replay/replay.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/checks.hpp"
#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "terrace/machine_file.hpp"

namespace terrace::cli {
namespace {

using pages::AccessTrace;
using pages::ReplayResult;

struct ReplayRequest {
  std::vector<std::string> traces, policies;
  std::string machine = "optane-4tier", size, page = "4KiB", json;
  std::uint32_t windows = 240;
  double overhead = 5, interval = 10, scale = 0;
  std::uint64_t seed = 1;
};

Machine chosen_machine(const std::string& name) {
  std::error_code failed;
  if (std::filesystem::is_regular_file(name, failed)) return expect(read_machine(name));
  return expect(machine_preset(name));
}

std::unique_ptr<AccessTrace> chosen_trace(const std::string& name, const ReplayRequest& request) {
  std::error_code failed;
  if (std::filesystem::is_regular_file(name, failed)) {
    std::ifstream file(name);
    return expect(pages::read_trace(file, name));
  }
  const Bytes size = request.size.empty() ? Bytes{} : expect(parse_bytes(request.size));
  auto made = pages::make_workload(name, request.windows, size);
  if (!made) throw BadInput(fmt::format("{} is no trace, and {}", name, made.error().message));
  return *std::move(made);
}

/// A recorded program is small beside the papers' machines: by default the fastest tier holds a quarter of
/// it.
double capacity_scale(const AccessTrace& trace, const Machine& machine, double asked) {
  if (asked > 0) return asked;
  const auto fast = static_cast<double>(machine.tiers.front().capacity.count);
  const auto footprint = static_cast<double>(trace.shape().footprint().count);
  return footprint > fast ? 1 : footprint / 4 / fast;
}

std::vector<std::string> chosen_policies(const ReplayRequest& request) {
  if (!request.policies.empty()) return request.policies;
  std::vector<std::string> all;
  for (const auto& info : pages::replay_policies()) {
    if (!info.name.starts_with("keeper-")) all.emplace_back(info.name);
  }
  return all;
}

double paper_percent(const std::string& policy) {
  for (const auto& info : pages::replay_policies()) {
    if (info.name == policy) return info.paper_percent;
  }
  return 0;
}

nlohmann::json result_json(const ReplayResult& result) {
  nlohmann::json row = {{"policy", result.policy},
                        {"seconds", result.seconds},
                        {"program_seconds", result.program_seconds},
                        {"profiling_seconds", result.looking_seconds},
                        {"migration_seconds", result.migrating_seconds},
                        {"largest_profiling_share", result.most_looking},
                        {"accesses", result.accesses},
                        {"moved_bytes", result.moved_bytes}};
  if (result.recall >= 0) row["recall"] = result.recall;
  if (result.precision >= 0) row["precision"] = result.precision;
  return row;
}

std::string share_or_dash(double share) { return share < 0 ? "-" : fmt::format("{:.2f}", share); }

void print_table(const std::vector<ReplayResult>& results, const Machine& machine) {
  using Align = Table::Align;
  std::vector<Table::Column> columns{{"policy"}};
  for (const char* title : {"seconds", "program", "profiling", "migration", "moved", "first is faster by",
                            "in the paper", "recall", "precision"})
    columns.push_back({title, Align::right});
  for (const MachineTier& tier : machine.tiers) columns.push_back({"% in " + tier.name, Align::right});
  Table table(columns);
  for (const ReplayResult& result : results) {
    const double ahead = result.seconds / results.front().seconds - 1;
    const double paper = results.front().policy == "keeper" ? paper_percent(result.policy) : 0;
    std::vector<std::string> cells{result.policy,
                                   fmt::format("{:.1f}", result.seconds),
                                   fmt::format("{:.1f}", result.program_seconds),
                                   fmt::format("{:.2f}", result.looking_seconds),
                                   fmt::format("{:.2f}", result.migrating_seconds),
                                   readable(Bytes{result.moved_bytes}),
                                   fmt::format("{:+.1f}%", ahead * 100),
                                   paper == 0 ? "-" : fmt::format("{:.0f}%", paper),
                                   share_or_dash(result.recall),
                                   share_or_dash(result.precision)};
    double all = 0;
    for (const double count : result.accesses) all += count;
    for (const double count : result.accesses) cells.push_back(fmt::format("{:.1f}", 100 * count / all));
    table.add(std::move(cells));
  }
  table.print();
}

nlohmann::json replay_one(const std::string& name, const Machine& machine, const ReplayRequest& request) {
  const auto trace = chosen_trace(name, request);
  pages::ReplayOptions options;
  options.overhead = request.overhead / 100;
  options.window_seconds = request.interval;
  options.seed = request.seed;
  options.capacity_scale = capacity_scale(*trace, machine, request.scale);
  options.page = expect(parse_bytes(request.page));
  std::vector<ReplayResult> results;
  ProgressLine line;
  for (const std::string& policy : chosen_policies(request)) {
    line.show(fmt::format("{}: {}", name, policy));
    results.push_back(expect(pages::replay(*trace, machine, policy, options)));
  }
  line.clear();
  const auto& shape = trace->shape();
  if (request.json.empty()) {
    fmt::print("{}: {} in {} windows on {}{}\n", name, readable(shape.footprint()), shape.windows,
               machine.name,
               options.capacity_scale == 1
                   ? std::string()
                   : fmt::format(", its tiers {:.4g} times as large", options.capacity_scale));
    print_table(results, machine);
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const ReplayResult& result : results) rows.push_back(result_json(result));
  return {{"trace", name},
          {"footprint_bytes", shape.footprint().count},
          {"windows", shape.windows},
          {"machine", machine.name},
          {"page_bytes", options.page.count},
          {"capacity_scale", options.capacity_scale},
          {"policies", rows}};
}

void run_replay(const ReplayRequest& request) {
  const auto json = request.json.empty() ? nullptr : std::make_unique<JsonFile>(request.json);
  const Machine machine = chosen_machine(request.machine);
  nlohmann::json all = nlohmann::json::array();
  for (const std::string& name : request.traces) all.push_back(replay_one(name, machine, request));
  if (json) json->write({{"replays", all}});
}

}  // namespace

void add_replay(CLI::App& app) {
  auto request = std::make_shared<ReplayRequest>();
  CLI::App* command = app.add_subcommand(
      "replay", "Runs recorded accesses on any machine under HM-Keeper and the systems it was compared with");
  std::string workloads;
  for (const auto& info : pages::trace_workloads())
    workloads += (workloads.empty() ? "" : ", ") + std::string(info.name);
  command
      ->add_option("traces", request->traces, "Files of `terrace run --record`, or workloads: " + workloads)
      ->type_name("TRACE")
      ->required();
  command->add_option("--machine", request->machine, "A preset or a file (default: optane-4tier)")
      ->type_name("NAME");
  command->add_option("--policies", request->policies, "Policies, the one to compare with first")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("a,b,c");
  command
      ->add_option("--windows", request->windows,
                   "Length of a workload (default: 240 windows of ten seconds)")
      ->check(whole_number<std::uint32_t>(1, 100000));
  command->add_option("--size", request->size, "Memory of a workload instead of its own");
  command->add_option("--page", request->page,
                      "Pages of the program's memory: one access bit each, and moved as a whole "
                      "(default: 4KiB; 2MiB, 1GiB)");
  command
      ->add_option("--overhead", request->overhead,
                   "Percent of a window that profiling may take (default: 5)")
      ->check(positive_number());
  command
      ->add_option("--interval", request->interval, "Seconds that policies take for a window (default: 10)")
      ->check(positive_number());
  command->add_option("--scale", request->scale, "Multiplies the machine's capacities")
      ->check(positive_number());
  command->add_option("--seed", request->seed, "Of what is drawn at random");
  command->add_option("--json", request->json, "Writes the result to this file instead of printing tables");
  command->callback([request] { run_replay(*request); });
}

}  // namespace terrace::cli

// SPDX-License-Identifier: Apache-2.0
#include "profile/calibrate.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/replace_file.hpp"
#include "cli/checks.hpp"
#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "profile/calibrate_device.hpp"
#include "profile/this_machine.hpp"
#include "terrace/machine_file.hpp"

namespace terrace::cli {
namespace {

using Align = Table::Align;

struct CalibrateRequest {
  std::string fast;  ///< empty: memory
  std::vector<std::string> slow;
  unsigned threads = 0;
  unsigned rounds = CalibrateOptions().rounds;
  std::string output, json;  ///< empty: none
  bool list = false;
};

std::string gigabytes(BytesPerSecond rate) { return fmt::format("{:.2f}", rate.value / 1e9); }
std::string percent(double share) { return fmt::format("{:.0f}%", share * 100); }

void print_tiers(const Machine& machine) {
  Table table({{"tier"},
               {"capacity", Align::right},
               {"read GB/s", Align::right},
               {"write GB/s", Align::right},
               {"latency us", Align::right},
               {"granularity", Align::right},
               {"in place"},
               {"spec"}});
  for (const MachineTier& tier : machine.tiers) {
    table.add({tier.name, readable(tier.capacity), gigabytes(tier.read), gigabytes(tier.write),
               fmt::format("{:.2f}", tier.latency.count() * 1e6), to_string(tier.granularity),
               tier.addressable ? "yes" : "no", tier.spec});
  }
  table.print();
}

/// GB/s by the size of a transfer.
void print_links(const Machine& machine) {
  if (machine.links.empty()) return;
  std::vector<Table::Column> columns{{"link, GB/s"}};
  for (const SizedRate& point : machine.links[0].rates)
    columns.push_back({to_string(point.size), Align::right});
  for (const char* title : {"both ways", "beside kernels", "kernels lose", "threads"})
    columns.push_back({title, Align::right});
  Table table(std::move(columns));
  for (const Link& link : machine.links) {
    std::vector<std::string> cells{fmt::format("{} > {}", machine[link.from].name, machine[link.to].name)};
    for (const SizedRate& point : link.rates) cells.push_back(gigabytes(point.rate));
    cells.insert(cells.end(), {percent(link.both_ways), percent(link.while_computing),
                               percent(link.compute_loss), std::to_string(link.threads)});
    table.add(std::move(cells));
  }
  fmt::print("\n");
  table.print();
}

/// What the number of copying threads changes, of links between memories.
void print_threads(const Machine& machine) {
  Table table({{"link, by copying threads"},
               {"threads", Align::right},
               {"GB/s", Align::right},
               {"beside kernels", Align::right},
               {"kernels lose", Align::right}});
  bool any = false;
  for (const Link& link : machine.links) {
    for (const ThreadedRate& one : link.by_threads) {
      table.add({fmt::format("{} > {}", machine[link.from].name, machine[link.to].name),
                 std::to_string(one.threads), gigabytes(one.rate), percent(one.while_computing),
                 percent(one.compute_loss)});
      any = true;
    }
  }
  if (!any) return;
  fmt::print("\n");
  table.print();
}

void print(const Machine& machine) {
  fmt::print("{}, {} threads: {:.0f} GFLOP/s in single precision\n\n", machine.compute.name,
             machine.compute.threads, machine.compute.flops_per_second / 1e9);
  print_tiers(machine);
  print_links(machine);
  print_threads(machine);
  fmt::print("\n{}\n", machine.source);
}

CalibrateOptions options_of(const CalibrateRequest& request) {
  CalibrateOptions options;
  for (const std::string& text : request.slow) options.slow.push_back(expect(parse_tier_spec(text)));
  options.threads = request.threads;
  options.rounds = request.rounds;
  return options;
}

Machine measure_memory(CalibrateOptions options) {
  ProgressLine line;
  options.progress = [&](std::string_view what, double share) {
    line.show(fmt::format("measuring {:3.0f}%: {}", share * 100, what));
  };
  return expect(calibrate(options));
}

/// A machine whose kernels run on a device.
Machine measure_device(const CalibrateRequest& request) {
  ProgressLine line;
  DeviceCalibrateOptions options;
  options.fast = expect(parse_tier_spec(request.fast));
  for (const std::string& text : request.slow) options.slow.push_back(expect(parse_tier_spec(text)));
  options.progress = [&](std::string_view what, double share) {
    line.show(fmt::format("measuring {:3.0f}%: {}", share * 100, what));
  };
  return expect(calibrate_device(options));
}

/// Returns where the machine goes, known before it is measured.
std::filesystem::path destination(const CalibrateRequest& request, const CalibrateOptions& options) {
  if (request.output.empty() && !request.fast.empty())
    throw BadInput("--fast: a machine with a device is written to a file of its own: add -o FILE");
  if (request.output.empty()) return machine_cache_file(expect(machine_cache_folder()), options);
  expect(check_replaceable(request.output));
  return request.output;
}

void write(const CalibrateRequest& request, const Machine& machine, const std::filesystem::path& file) {
  if (!request.output.empty()) return write_machine(machine, file);
  expect(keep_machine(machine, file));
}

void run_calibrate(const CalibrateRequest& request) {
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  const CalibrateOptions options = options_of(request);
  const std::filesystem::path file = destination(request, options);
  const Machine machine = request.fast.empty() ? measure_memory(options) : measure_device(request);
  write(request, machine, file);
  if (json)
    return json->write({{"file", file.native()}, {"machine", nlohmann::json::parse(to_json(machine))}});
  print(machine);
  fmt::print("written to {}\n", file.native());
}

void list_presets(const CalibrateRequest& request) {
  if (!request.json.empty()) {
    auto list = nlohmann::json::array();
    JsonFile json(request.json);
    for (const MachineInfo& info : machine_presets())
      list.push_back({{"name", info.name}, {"summary", info.summary}});
    return json.write({{"machines", list}});
  }
  Table table({{"machine"}, {"what it is"}});
  for (const MachineInfo& info : machine_presets()) table.add({info.name, info.summary});
  table.print();
}

}  // namespace

void add_calibrate(CLI::App& app) {
  auto request = std::make_shared<CalibrateRequest>();
  CLI::App* command = app.add_subcommand("calibrate", "Measures the tiers and links of this computer");
  command
      ->add_option("--fast", request->fast,
                   "The tier that kernels use, on a device: cuda:0:100GiB (default: memory)")
      ->type_name("SPEC");
  command->add_option("--slow", request->slow, "A tier to measure beside memory; may stand several times")
      ->type_name("SPEC")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--threads", request->threads,
                   "Threads to compute with (default: all this process may use)")
      ->type_name("N")
      ->check(whole_number(1U, 1024U));
  command->add_option("--rounds", request->rounds, "How often everything is measured; the median counts")
      ->type_name("N")
      ->check(whole_number(1U, 1000U))
      ->capture_default_str();
  command->add_option("-o,--output", request->output, "Write the machine here (default: the user's cache)")
      ->type_name("FILE");
  command->add_option("--json", request->json, "Write the result to this file instead of printing tables")
      ->type_name("FILE");
  command->add_flag("--list", request->list, "List the machines that come with the program instead");
  command->callback([request] { request->list ? list_presets(*request) : run_calibrate(*request); });
}

}  // namespace terrace::cli

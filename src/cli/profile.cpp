// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/checks.hpp"
#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "cli/profile.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "profile/kernel_times.hpp"
#include "train/synthetic_data.hpp"

namespace terrace::cli {
namespace {

struct Measured {
  Rates rates;
  Graph graph;  ///< as it ran
  unsigned threads = 1;
  std::vector<KernelTime> kernels;

  KernelTime total() const {
    return std::accumulate(kernels.begin(), kernels.end(), KernelTime{},
                           [](KernelTime sum, const KernelTime& kernel) { return sum += kernel; });
  }
  double share(const KernelTime& part) const { return part.time / total().time; }
};

Measured measure_kernels(const ProfileRequest& request, ProgressLine& line) {
  line.show("building and choosing layouts");
  const Graph graph = request.training_graph();
  Program program = expect(compile(graph, request.threads));
  line.show(fmt::format("taking {} of memory", readable(program.arena)));
  Trainer trainer = expect(Trainer::start(std::move(program), {}));
  line.show("measuring what the computer can do");
  Measured measured{expect(measure_rates(trainer.program().threads)),
                    trainer.program().graph,
                    trainer.program().threads,
                    {}};
  SyntheticData data(measured.graph, 0);
  std::vector<Seconds> times(measured.graph.kernels.size());
  // The first step touches memory and code for the first time, and does not count.
  for (std::int64_t step = 0; step <= request.steps; ++step) {
    line.show(fmt::format("step {}/{}", step, request.steps));
    data.fill(static_cast<std::uint64_t>(step), trainer);
    step == 0 ? trainer.step() : trainer.step(times);
  }
  measured.kernels =
      kernel_times(measured.graph, times, static_cast<std::uint64_t>(request.steps), measured.rates);
  return measured;
}

/// The numbers of kernels, the slowest first.
std::vector<std::size_t> slowest(const Measured& measured, std::size_t count) {
  std::vector<std::size_t> order(measured.kernels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return measured.kernels[a].time > measured.kernels[b].time;
  });
  order.resize(std::min(count, order.size()));
  return order;
}

std::vector<std::string> figures(const Measured& measured, const KernelTime& time) {
  return {fmt::format("{:.2f}", time.time.count() * 1e3), fmt::format("{:.1f}%", measured.share(time) * 100),
          fmt::format("{:.1f}", time.flops_per_second() / 1e9),
          fmt::format("{:.1f}", time.bandwidth().value / 1e9),
          fmt::format("{:.0f}%", time.roofline_share() * 100)};
}

Table table_of(std::vector<Table::Column> first, std::vector<Table::Column> last = {}) {
  using Align = Table::Align;
  for (const char* title : {"ms/step", "share", "GFLOP/s", "GB/s", "roofline"})
    first.push_back({title, Align::right});
  first.insert(first.end(), last.begin(), last.end());
  return Table(std::move(first));
}

template <class... Cells>
std::vector<std::string> table_row(std::vector<std::string> first, const std::vector<std::string>& middle,
                                   Cells... last) {
  first.insert(first.end(), middle.begin(), middle.end());
  (first.push_back(std::move(last)), ...);
  return first;
}

void print_measured(const ProfileRequest& request, const Measured& measured) {
  fmt::print(
      "{} threads reach {:.0f} GFLOP/s (multiply-adds in registers) and {:.1f} GB/s (a = b + s c in memory). "
      "Roofline: the least\ntime these allow over the time it took; above 100% operands were in a cache.\n\n",
      measured.threads, measured.rates.flops_per_second / 1e9, measured.rates.bandwidth.value / 1e9);
  Table kinds = table_of({{"operation"}, {"count", Table::Align::right}});
  for (const auto& [operation, all] : by_operation(measured.graph, measured.kernels)) {
    kinds.add(table_row({operation, std::to_string(all.kernels)}, figures(measured, all)));
  }
  const KernelTime total = measured.total();
  kinds.add(table_row({"total", std::to_string(total.kernels)}, figures(measured, total)));
  kinds.print();
  if (request.top == 0) return;
  fmt::print("\n");
  Table kernels = table_of({{"kernel"}}, {{"implementation"}, {"layouts"}});
  for (const std::size_t i : slowest(measured, request.top)) {
    const Kernel& kernel = measured.graph.kernels[i];
    kernels.add(table_row({kernel.name}, figures(measured, measured.kernels[i]), implementation_of(kernel),
                          layouts_of(kernel)));
  }
  kernels.print();
}

nlohmann::json kernel_json(const Measured& measured, const KernelTime& time) {
  return {{"seconds", time.time.count()},
          {"share", measured.share(time)},
          {"flops", time.flops},
          {"touched_bytes", time.touched.count},
          {"flops_per_second", time.flops_per_second()},
          {"bytes_per_second", time.bandwidth().value},
          {"roofline_share", time.roofline_share()}};
}

nlohmann::json measured_json(const ProfileRequest& request, const Measured& measured) {
  auto operations = nlohmann::json::array(), kernels = nlohmann::json::array();
  for (const auto& [operation, all] : by_operation(measured.graph, measured.kernels)) {
    operations.push_back(kernel_json(measured, all));
    operations.back().update({{"operation", operation}, {"count", all.kernels}});
  }
  for (std::size_t i = 0; i < measured.kernels.size(); ++i) {
    const Kernel& kernel = measured.graph.kernels[i];
    kernels.push_back(kernel_json(measured, measured.kernels[i]));
    kernels.back().update({{"kernel", kernel.name},
                           {"operation", kernel.operation},
                           {"implementation", implementation_of(kernel)},
                           {"layouts", layouts_of(kernel)}});
  }
  return {{"model", request.model},
          {"batch", request.batch_json()},
          {"threads", measured.threads},
          {"steps", request.steps},
          {"peak_flops_per_second", measured.rates.flops_per_second},
          {"peak_bytes_per_second", measured.rates.bandwidth.value},
          {"total", kernel_json(measured, measured.total())},
          {"operations", operations},
          {"kernels", kernels}};
}

void run_profile(const ProfileRequest& request) {
  if (!request.kernels) return profile_tensors(request);
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  ProgressLine line;
  const Measured measured = measure_kernels(request, line);
  line.clear();
  json ? json->write(measured_json(request, measured)) : print_measured(request, measured);
}

}  // namespace

void add_profile(CLI::App& app) {
  auto request = std::make_shared<ProfileRequest>();
  CLI::App* command = app.add_subcommand("profile", "Measures a training step: its tensors, or its kernels");
  command
      ->add_option("model", request->model,
                   "Name of the network (see terrace models), or a file that terrace graph wrote")
      ->type_name("MODEL|FILE")
      ->required();
  command->add_flag(
      "--kernels", request->kernels,
      "Time every kernel and compare it with what the computer can do, instead of looking at tensors");
  command->add_option("--batch", request->options.batch, "Samples per step (default: the model's own)")
      ->type_name("N")
      ->check(whole_number(std::int64_t{1}));
  command
      ->add_option("--steps", request->steps,
                   "Of --kernels: steps to average over, after one to warm up (default: 3)")
      ->type_name("N")
      ->check(whole_number(std::int64_t{1}));
  command
      ->add_option("--threads", request->threads,
                   "Threads to compute with (default: all this process may use)")
      ->type_name("N")
      ->check(whole_number(1U, 1024U));
  command->add_option("--top", request->top, "Of --kernels: also list the N slowest")
      ->type_name("N")
      ->check(whole_number(std::size_t{1}));
  command->add_option("--json", request->json, "Write the result to this file instead of printing tables")
      ->type_name("FILE");
  command->add_option("-o,--output", request->plot, "Of tensors: also draw the tables into this SVG file")
      ->type_name("FILE");
  command->callback([request] { run_profile(*request); });
}

}  // namespace terrace::cli

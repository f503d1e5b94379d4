// SPDX-License-Identifier: Apache-2.0
// What the aggregator of DeepTM (004 section III-C) is worth in executed steps: the same planner with tensors
// by themselves and aggregated, in one process, step by step in turn.
#pragma once

#include <fmt/format.h>

#include "contender.hpp"
#include "planned_training.hpp"
#include "report.hpp"

namespace terrace::bench {

/// One plan, ready to be carried out, and what its steps took.
struct AggregatorRun {
  Machine machine;
  Plan plan;
  Trainer trainer;
  SyntheticData data;
  std::vector<double> seconds = {}, rates = {};  ///< of a step; of its transfers while one is on its way

  void step() {
    data.fill(trainer.steps_done(), trainer);
    const auto start = std::chrono::steady_clock::now();
    trainer.step();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    rates.push_back(rate());
  }

 private:
  /// Bytes a second while at least one transfer is on its way.
  double rate() const {
    std::vector<Interval> copies;
    double bytes = 0;
    for (const Traffic& moved : trainer.timeline().moved) bytes += static_cast<double>(moved.bytes.count);
    for (std::size_t i = 0; i < plan.instructions.size(); ++i)
      if (std::holds_alternative<Copy>(plan.instructions[i]))
        copies.push_back(trainer.timeline().instructions[i]);
    std::sort(copies.begin(), copies.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    Seconds busy{0}, end{0};
    for (const Interval& copy : copies) {
      busy += std::max(Seconds{0}, copy.end - std::max(copy.begin, end));
      end = std::max(end, copy.end);
    }
    return busy > Seconds{0} ? bytes / busy.count() : 0;
  }
};

inline std::unique_ptr<AggregatorRun> start_run(const nlohmann::json& task) {
  auto [workload, budget] = fitted(task);
  const Profile profile = profile_of(workload, budget).value();
  Planned planned = plan_of(workload, profile, budget, task.at("planner").get<std::string>()).value();
  const Graph graph = workload.graph();
  Trainer trainer =
      Trainer::start(std::move(workload.program), planned.plan, workload.machine, training_options()).value();
  return std::unique_ptr<AggregatorRun>(new AggregatorRun{std::move(workload.machine), planned.plan.plan(),
                                                          std::move(trainer),
                                                          SyntheticData(graph, training_options().seed)});
}

inline std::size_t transfers_of(const Plan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.instructions.begin(), plan.instructions.end(),
                    [](const Instruction& one) { return std::holds_alternative<Copy>(one); }));
}

inline nlohmann::json aggregator_row(const std::string& model, std::int64_t batch, const std::string& slow,
                                     const std::string& planner, int rounds) {
  std::vector<std::unique_ptr<AggregatorRun>> runs;
  for (const char* aggregate : {"+aggregate=off", "+aggregate=on"})
    runs.push_back(start_run({{"model", model},
                              {"batch", batch},
                              {"sequence", nullptr},
                              {"threads", std::thread::hardware_concurrency()},
                              {"fast", "30%"},
                              {"slow", slow},
                              {"planner", planner + aggregate}}));
  for (int i = 0; i < rounds + 2; ++i) {
    for (auto& run : runs) run->step();
    if (i == 1)
      for (auto& run : runs) run->seconds.clear(), run->rates.clear();
  }
  std::vector<double> gains;
  for (std::size_t i = 0; i < runs[0]->seconds.size(); ++i)
    gains.push_back(runs[0]->seconds[i] / runs[1]->seconds[i]);
  nlohmann::json row{{"model", model},     {"batch", batch},        {"slow", slow},
                     {"planner", planner}, {"gain", median(gains)}, {"spread", spread(gains)}};
  std::string line =
      fmt::format("| {} {} | {} | {} |", model, batch, slow.substr(0, slow.find(':')), planner);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const AggregatorRun& run = *runs[i];
    row[i == 0 ? "off" : "on"] = {
        {"transfers", transfers_of(run.plan)}, {"seconds", median(run.seconds)}, {"rate", median(run.rates)}};
    line += fmt::format(" {} | {:.2f} GB/s | {:.3f} s |", transfers_of(run.plan), median(run.rates) / 1e9,
                        median(run.seconds));
  }
  print_line(line + fmt::format(" {:.3f} ({:.3f} to {:.3f}) |", median(gains), quantile(gains, 0),
                                quantile(gains, 1)));
  return row;
}

/// Networks that fit here, on a disk and on memory with the rates of 004's Optane by those of its DRAM.
inline nlohmann::json aggregator_executed(bool quick) {
  const ScratchFolder scratch("build/bench/deeptm-" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1);
  print_head(
      "The aggregator, executed with 30% of the peak",
      "| network | slow tier | planner | transfers | while moving | step | aggregated: transfers | while "
      "moving | step | gain |");
  nlohmann::json rows = nlohmann::json::array();
  const std::string file = "file:" + (scratch.path() / "spill").string() + ":3GiB";
  for (const std::string& slow :
       {std::string("emulated:3GiB,read=8GB/s,write=2.5GB/s,latency=300ns"), file}) {
    for (const auto& [model, batch] : {std::pair{"resnet50", 4}, std::pair{"mobilenet", 8}}) {
      if (quick && model != std::string("mobilenet")) continue;
      for (const char* planner : {"prefetch", "deeptm+episodes=40"})
        rows.push_back(aggregator_row(model, batch, slow, planner, quick ? 3 : 9));
    }
  }
  return rows;
}

}  // namespace terrace::bench

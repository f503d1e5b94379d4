// SPDX-License-Identifier: Apache-2.0
// What the aggregator of DeepTM (004 section III-C) is worth in executed steps: the same planner with tensors
// by themselves and aggregated, in one process, step by step in turn.
#pragma once

#include <fmt/format.h>

#include "contender.hpp"
#include "planned_run.hpp"
#include "report.hpp"

namespace terrace::bench {

/// A run, and what its transfers did while one of them was on its way.
struct AggregatorRun {
  std::unique_ptr<PlannedRun> run;
  std::vector<double> rates = {};  ///< bytes a second, by step

  void step() {
    run->step();
    double bytes = 0;
    for (const Traffic& moved : run->timeline().moved) bytes += static_cast<double>(moved.bytes.count);
    const Seconds busy = covered(transfers(run->plan, run->timeline()));
    rates.push_back(busy > Seconds{0} ? bytes / busy.count() : 0);
  }
  void forget() {
    run->seconds.clear();
    rates.clear();
  }
};

inline std::size_t transfers_of(const Plan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.instructions.begin(), plan.instructions.end(),
                    [](const Instruction& one) { return std::holds_alternative<Copy>(one); }));
}

inline nlohmann::json aggregator_row(const std::string& model, std::int64_t batch, const std::string& slow,
                                     const std::string& planner, int rounds) {
  std::vector<AggregatorRun> runs;
  for (const char* aggregate : {"+aggregate=off", "+aggregate=on"})
    runs.push_back({start_run({{"model", model},
                               {"batch", batch},
                               {"sequence", nullptr},
                               {"threads", std::thread::hardware_concurrency()},
                               {"fast", "30%"},
                               {"slow", slow},
                               {"planner", planner + aggregate}})});
  for (int i = 0; i < rounds + 2; ++i) {
    for (AggregatorRun& run : runs) run.step();
    if (i == 1)
      for (AggregatorRun& run : runs) run.forget();
  }
  std::vector<double> gains;
  for (std::size_t i = 0; i < runs[0].run->seconds.size(); ++i)
    gains.push_back(runs[0].run->seconds[i] / runs[1].run->seconds[i]);
  nlohmann::json row{{"model", model},     {"batch", batch},        {"slow", slow},
                     {"planner", planner}, {"gain", median(gains)}, {"spread", spread(gains)}};
  std::string line =
      fmt::format("| {} {} | {} | {} |", model, batch, slow.substr(0, slow.find(':')), planner);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const AggregatorRun& run = runs[i];
    const double step = median(run.run->seconds);
    const std::size_t transfers = transfers_of(run.run->plan);
    row[i == 0 ? "off" : "on"] = {{"transfers", transfers}, {"seconds", step}, {"rate", median(run.rates)}};
    line += fmt::format(" {} | {:.2f} GB/s | {:.3f} s |", transfers, median(run.rates) / 1e9, step);
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

// SPDX-License-Identifier: Apache-2.0
// CachedArrays' modes on networks that fit here (003 Fig. 2, executed): live, with a manager whose policy
// decides while the step runs, and as the plans that its policy recorded.
//
// Slow memory is emulated, slower than this computer's by the ratios of 003's machine. Each step alternates
// with one of the run with all memory, whose loss it must have bit by bit. Memory mode is a cache of the
// processor, which this computer does not have: it is predicted from the kernels and rates measured here.
#pragma once

#include <fmt/format.h>

#include "contender.hpp"
#include "exec/live_training.hpp"
#include "planned_training.hpp"
#include "planners/baselines/memory_mode.hpp"
#include "report.hpp"

namespace terrace::bench {

struct ExecutedNetwork {
  const char* model;
  std::int64_t batch;
};

/// The run with all memory that all others are compared with.
struct AllFast {
  Trainer trainer;
  SyntheticData data;

  double step() {
    data.fill(trainer.steps_done(), trainer);
    const auto start = std::chrono::steady_clock::now();
    trainer.step();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

struct ModeRun {
  std::vector<double> slower;    ///< a step over the same step with all memory
  double written = 0, read = 0;  ///< GB to slow memory and from it, in a step
};

inline void check_loss(const std::vector<std::byte>& ours, const std::vector<std::byte>& theirs) {
  if (ours != theirs) throw std::runtime_error("a loss differs from that with all memory");
}

inline AllFast start_all_fast(const Program& program) {
  return {Trainer::start(program, training_options()).value(),
          SyntheticData(program.graph, training_options().seed)};
}

inline ModeRun run_live(const Program& program, const std::string& fast, const std::string& slow,
                        const char* mode, int rounds) {
  AllFast all = start_all_fast(program);
  Manager manager({fast, slow}, mode);
  LiveTraining live(program, manager, training_options().seed);
  ModeRun run;
  const auto links = [&] { return manager.statistics().links; };
  for (int i = 0; i < rounds + 1; ++i) {
    const std::uint64_t step = all.trainer.steps_done();
    const double usual = all.step();
    const std::vector<std::byte> loss = all.trainer.result_bytes(0);
    all.data.fill(step, all.trainer);  // the step has used the memory of its inputs for other tensors
    const auto before = links();
    const auto start = std::chrono::steady_clock::now();
    live.step({training_options().seed, step, training_options().learning_rate},
              [&](const Tensor& input, std::span<std::byte> to) {
                const auto from = all.trainer.input_bytes(input.name);
                std::copy(from.begin(), from.end(), to.begin());
              })
        .value();
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    check_loss(live.result(0), loss);
    const auto after = links();
    run.written = static_cast<double>((after[0][1].bytes - before[0][1].bytes).count) / 1e9;
    run.read = static_cast<double>((after[1][0].bytes - before[1][0].bytes).count) / 1e9;
    if (i > 0) run.slower.push_back(took / usual);
  }
  return run;
}

inline ModeRun run_recorded(const nlohmann::json& task, int rounds) {
  AllFast all = start_all_fast(fitted(task).workload.program);
  Training training = start_planned(task);
  SyntheticData data(training.trainer.program().graph, training_options().seed);
  ModeRun run;
  for (int i = 0; i < rounds + 1; ++i) {
    const double usual = all.step();
    const nlohmann::json answer = step(training, data);
    check_loss(training.trainer.result_bytes(0), all.trainer.result_bytes(0));
    if (i > 0) run.slower.push_back(answer.at("seconds").get<double>() / usual);
  }
  for (const Traffic& moved : training.trainer.timeline().moved)
    (moved.from == TierId{0} ? run.written : run.read) += static_cast<double>(moved.bytes.count) / 1e9;
  return run;
}

/// Memory mode with and without reuse of dead tensors' addresses, predicted, over all in fast memory.
inline nlohmann::json predicted_memory_mode(const nlohmann::json& task) {
  const auto [workload, budget] = fitted(task);
  const Profile profile = profile_of(workload, budget).value();
  const double usual = KernelClock(workload.graph(), workload.machine, profile).fast_step().count();
  nlohmann::json row{{"model", task.at("model")}, {"batch", task.at("batch")}};
  for (const auto& [mode, dead] :
       {std::pair{"2LM none", DeadMemory::kept}, std::pair{"2LM M", DeadMemory::reused}}) {
    const auto cached =
        predict_memory_mode(PlanRequest{workload.graph(), workload.machine, profile, budget}, dead);
    if (!cached) continue;
    const double slower = cached->step.count() / usual;
    row[mode] = slower;
    print_line(fmt::format("| {} {} | {:.0f} | {} | predicted {:.2f} | | {:.2f} | {:.2f} | | | | |",
                           task.at("model").get<std::string>(), task.at("batch").get<std::int64_t>(),
                           static_cast<double>(workload.peak.count) / 1e6, mode, slower,
                           static_cast<double>(cached->written_back.count) / 1e9,
                           static_cast<double>(cached->misses.count) / 1e9));
  }
  return row;
}

inline nlohmann::json executed_modes(bool quick) {
  const ScratchFolder scratch("build/bench/cachedarrays-" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1);
  constexpr double kShare = 180.0 / 526;
  constexpr const char* kSlow = "emulated:4GiB,read=8GB/s,write=2.5GB/s,latency=304ns";
  const unsigned threads = std::thread::hardware_concurrency();
  nlohmann::json rows = nlohmann::json::array();
  print_head(
      fmt::format("Executed, {:.0f}% of the peak in fast memory, {} beside it", 100 * kShare, kSlow),
      "| network, batch | peak MB | mode | live, over all in fast memory | least to greatest | GB written "
      "| GB read | recorded plan | least to greatest | GB written | GB read |");
  for (const auto& [model, batch] :
       {ExecutedNetwork{"resnet50", 2}, ExecutedNetwork{"vgg16", 1}, ExecutedNetwork{"densenet264", 1}}) {
    if (quick && model != std::string("resnet50")) continue;
    nlohmann::json task{{"model", model},
                        {"batch", batch},
                        {"sequence", nullptr},
                        {"threads", threads},
                        {"fast", fmt::format("{:.1f}%", 100 * kShare)},
                        {"slow", kSlow}};
    const Program program = compile(graph_of(task), threads).value();
    const Bytes fast{static_cast<std::uint64_t>(kShare * static_cast<double>(program.peak.count))};
    const std::string memory = "dram:" + to_string(round_up(fast, Bytes{4096}));
    rows.push_back(predicted_memory_mode(task));
    for (const auto& [mode, planner] : {std::pair{"none", "ca-none"}, std::pair{"L", "ca-l"},
                                        std::pair{"LM", "ca-lm"}, std::pair{"LMP", "ca-lmp"}}) {
      const ModeRun live = run_live(program, memory, kSlow, mode, quick ? 2 : 3);
      task["planner"] = planner;
      const ModeRun recorded = run_recorded(task, quick ? 2 : 3);
      nlohmann::json row{{"model", model}, {"batch", batch}, {"mode", mode}};
      std::string line = fmt::format("| {} {} | {:.0f} | {} |", model, batch,
                                     static_cast<double>(program.peak.count) / 1e6, mode);
      for (const auto& [name, run] : {std::pair{"live", &live}, std::pair{"recorded", &recorded}}) {
        row[name] = {{"slower", median(run->slower)},
                     {"spread", spread(run->slower)},
                     {"written_gb", run->written},
                     {"read_gb", run->read}};
        line += fmt::format(" {:.2f} | {:.2f} to {:.2f} | {:.2f} | {:.2f} |", median(run->slower),
                            quantile(run->slower, 0), quantile(run->slower, 1), run->written, run->read);
      }
      print_line(line);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace terrace::bench

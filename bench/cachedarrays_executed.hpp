// SPDX-License-Identifier: Apache-2.0
// CachedArrays' modes on networks that fit here (003 Fig. 2, executed): live, with a manager whose policy
// decides while the step runs, and as the plans that its policy recorded.
//
// Networks are smaller ones of the families of 003 Table III, whose bytes are mostly activations, as there.
// Slow memory is emulated, slower than this computer's by the ratios of 003's machine. A live step and one of
// the recorded plan alternate with one with all memory, whose loss both must have bit by bit. Recorded plans
// follow from the policy alone, so that no kernel is measured for them. Memory mode is a cache of the
// processor, which this computer does not have: it is predicted from kernels and rates measured here.
#pragma once

#include <fmt/format.h>

#include "contender.hpp"
#include "exec/live_training.hpp"
#include "planned_training.hpp"
#include "planners/baselines/memory_mode.hpp"
#include "report.hpp"
#include "sentinel_cases.hpp"

namespace terrace::bench {

struct ExecutedNetwork {
  const char* name;
  std::int64_t batch;
  Graph (*build)(std::int64_t batch);
};

template <class Logits>
Graph imagenet_training(std::string name, std::int64_t batch, const Logits& logits) {
  return training_on_images(std::move(name), batch, 224, logits);
}

/// VGG's dense layers are narrow: with those of the paper's network most bytes of a small batch are weights.
inline std::vector<ExecutedNetwork> executed_networks() {
  return {{"densenet121", 2,
           [](std::int64_t batch) {
             return imagenet_training("densenet121", batch, [](Net& net, Value image) {
               return networks::densenet(net, image, {.blocks = {6, 12, 24, 16}});
             });
           }},
          {"resnet50", 2, [](std::int64_t batch) { return zoo_model("resnet50", batch); }},
          {"vgg16", 2, [](std::int64_t batch) {
             return imagenet_training("vgg16", batch, [](Net& net, Value image) {
               return networks::vgg(net, image, {.hidden = 256});
             });
           }}};
}

/// A network on this computer, with the share of its peak in fast memory that 003's machine has.
struct ExecutedCase {
  ExecutedNetwork network;
  Workload workload;
  std::vector<Bytes> budget;
  std::string slow;  ///< the spec of slow memory

  std::string fast() const { return "dram:" + to_string(round_up(budget[0], Bytes{4096})); }
  std::string title() const {
    return fmt::format("{} {} | {:.0f}", network.name, network.batch,
                       static_cast<double>(workload.peak.count) / 1e6);
  }
};

/// The run with all memory that all others are compared with.
struct AllFast {
  Trainer trainer;
  SyntheticData data;

  explicit AllFast(const Program& program)
      : trainer(Trainer::start(program, training_options()).value()),
        data(program.graph, training_options().seed) {}

  double step() {
    data.fill(trainer.steps_done(), trainer);
    const auto start = std::chrono::steady_clock::now();
    trainer.step();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

/// Steps of one kind beside those with all memory.
struct ModeRun {
  std::vector<double> slower;    ///< a step over the same step with all memory
  std::vector<double> waited;    ///< for copies, over the same
  double written = 0, read = 0;  ///< GB to slow memory and from it, in the last step
};

inline void check_loss(const std::vector<std::byte>& ours, const std::vector<std::byte>& theirs) {
  if (ours != theirs) throw std::runtime_error("a loss differs from that with all memory");
}

/// A mode's policy, deciding while the step runs.
class LiveRun {
 public:
  LiveRun(const ExecutedCase& on, const char* mode)
      : manager_({on.fast(), on.slow}, mode), live_(on.workload.program, manager_, training_options().seed) {}

  void step(AllFast& all, double usual, bool counts) {
    const std::uint64_t number = all.trainer.steps_done() - 1;
    all.data.fill(number, all.trainer);  // the step has used the memory of its inputs for other tensors
    const auto before = manager_.statistics();
    const auto start = std::chrono::steady_clock::now();
    live_
        .step({training_options().seed, number, training_options().learning_rate},
              [&](const Tensor& input, std::span<std::byte> to) {
                const auto from = all.trainer.input_bytes(input.name);
                std::copy(from.begin(), from.end(), to.begin());
              })
        .value();
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const auto after = manager_.statistics();
    run.written = static_cast<double>((after.links[0][1].bytes - before.links[0][1].bytes).count) / 1e9;
    run.read = static_cast<double>((after.links[1][0].bytes - before.links[1][0].bytes).count) / 1e9;
    if (!counts) return;
    run.slower.push_back(took / usual);
    run.waited.push_back((after.waited - before.waited).count() / usual);
  }
  const std::vector<std::byte>& loss() const { return live_.result(0); }

  ModeRun run;

 private:
  Manager manager_;
  LiveTraining live_;
};

/// The plan that a mode's policy recorded.
class RecordedRun {
 public:
  RecordedRun(const ExecutedCase& on, const char* planner) : trainer_(start(on, planner)) {}

  void step(AllFast& all, double usual, bool counts) {
    const std::uint64_t number = all.trainer.steps_done() - 1;
    all.data.fill(number, trainer_);
    const auto start = std::chrono::steady_clock::now();
    trainer_.step();
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    run.written = run.read = 0;
    for (const Traffic& moved : trainer_.timeline().moved)
      (moved.from == TierId{0} ? run.written : run.read) += static_cast<double>(moved.bytes.count) / 1e9;
    if (!counts) return;
    run.slower.push_back(took / usual);
    run.waited.push_back(trainer_.timeline().exposed.count() / usual);
  }
  std::vector<std::byte> loss() const { return trainer_.result_bytes(0); }

  ModeRun run;

 private:
  static Trainer start(const ExecutedCase& on, const char* planner) {
    const Workload& workload = on.workload;
    const Profile profile = estimate(workload.graph(), workload.machine);
    const Planned planned = plan_of(workload, profile, on.budget, planner).value();
    return Trainer::start(workload.program, planned.plan, workload.machine, training_options()).value();
  }

  Trainer trainer_;
};

inline std::string mode_cells(const ModeRun& run) {
  return fmt::format(" {:.2f} ({:.2f} to {:.2f}) | {:.2f} | {:.2f} | {:.2f} |", median(run.slower),
                     quantile(run.slower, 0), quantile(run.slower, 1), median(run.waited), run.written,
                     run.read);
}

inline nlohmann::json mode_json(const ModeRun& run) {
  return {{"slower", median(run.slower)},
          {"spread", spread(run.slower)},
          {"waited", median(run.waited)},
          {"written_gb", run.written},
          {"read_gb", run.read}};
}

/// `planner`: that records the mode; nullptr: none does, for what moves in the background has no order that a
/// rehearsal without clocks could record.
inline nlohmann::json mode_row(const ExecutedCase& on, const char* mode, const char* planner, int rounds) {
  constexpr int kWarmUp = 2;
  AllFast all(on.workload.program);
  LiveRun live(on, mode);
  std::optional<RecordedRun> recorded;
  if (planner != nullptr) recorded.emplace(on, planner);
  for (int i = 0; i < rounds + kWarmUp; ++i) {
    const double usual = all.step();
    const std::vector<std::byte> loss = all.trainer.result_bytes(0);
    live.step(all, usual, i >= kWarmUp);
    check_loss(live.loss(), loss);
    if (!recorded) continue;
    recorded->step(all, usual, i >= kWarmUp);
    check_loss(recorded->loss(), loss);
  }
  print_line(fmt::format("| {} | {} |", on.title(), mode) + mode_cells(live.run) +
             (recorded ? mode_cells(recorded->run) : " | | | |"));
  nlohmann::json row{{"mode", mode}, {"live", mode_json(live.run)}};
  if (recorded) row["recorded"] = mode_json(recorded->run);
  return row;
}

/// Memory mode with and without reuse of dead tensors' addresses, predicted, over all in fast memory.
inline nlohmann::json predicted_memory_mode(const ExecutedCase& on) {
  const Workload& workload = on.workload;
  const Profile profile = profile_of(workload, on.budget).value();
  const double usual = KernelClock(workload.graph(), workload.machine, profile).fast_step().count();
  nlohmann::json row = nlohmann::json::object();
  for (const auto& [mode, dead] :
       {std::pair{"2LM none", DeadMemory::kept}, std::pair{"2LM M", DeadMemory::reused}}) {
    const auto cached =
        predict_memory_mode(PlanRequest{workload.graph(), workload.machine, profile, on.budget}, dead);
    if (!cached) continue;
    const double slower = cached->step.count() / usual;
    row[mode] = slower;
    print_line(fmt::format("| {} | {} | predicted {:.2f} | | {:.2f} | {:.2f} | | | | |", on.title(), mode,
                           slower, static_cast<double>(cached->written_back.count) / 1e9,
                           static_cast<double>(cached->misses.count) / 1e9));
  }
  return row;
}

/// Slow memory that is to this computer's as 003's NVRAM is to its DRAM, and as much larger than fast memory:
/// modes without M keep the dead.
inline std::string slow_as_in_the_paper(const Machine& here, Bytes fast) {
  constexpr double kReadShare = 39.0 / 104, kWriteShare = 13.0 / 80, kLarger = 1300.0 / 180;
  const Bytes size{static_cast<std::uint64_t>(kLarger * static_cast<double>(fast.count))};
  return fmt::format("emulated:{}MiB,read={:.2f}GB/s,write={:.2f}GB/s,latency=304ns", size.count >> 20U,
                     kReadShare * here.tiers[0].read.value / 1e9,
                     kWriteShare * here.tiers[0].write.value / 1e9);
}

inline ExecutedCase prepared(const ExecutedNetwork& network, double share) {
  const Graph graph = network.build(network.batch);
  const unsigned threads = std::thread::hardware_concurrency();
  const Program program = compile(graph, threads).value();
  const Bytes fast{static_cast<std::uint64_t>(share * static_cast<double>(program.peak.count))};
  WorkloadRequest request{.graph = graph, .threads = threads};
  // Only what it says of fast memory is taken from this one.
  request.slow = {"emulated:1GiB,read=4GB/s,write=2GB/s,latency=300ns"};
  const Machine here = machine_of(request).value();
  request.slow = {slow_as_in_the_paper(here, fast)};
  Workload workload = prepare(request).value();
  std::vector<Bytes> budget = budget_of(workload, fmt::format("{:.1f}%", 100 * share)).value();
  return {network, fit(request, std::move(workload), budget[0]).value(), std::move(budget), request.slow[0]};
}

inline nlohmann::json executed_modes(const PaperRequest& request) {
  const ScratchFolder scratch("build/bench/cachedarrays-" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1);
  constexpr double kShare = 180.0 / 526;
  nlohmann::json rows = nlohmann::json::array();
  print_head(
      fmt::format(
          "Executed with {:.0f}% of the peak in fast memory: steps over those with all in it (least "
          "to greatest), waiting for copies over the same, GB written to slow memory and read from it",
          100 * kShare),
      "| network, batch | peak MB | mode | live | waiting | written | read | recorded plan | waiting | "
      "written | read |");
  for (const ExecutedNetwork& network : executed_networks()) {
    if (!request.asks_for_network(network.name)) continue;
    if (request.quick && network.name != std::string("resnet50")) continue;
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const ExecutedCase on = prepared(network, kShare);
    std::fprintf(stderr, "%s: %s beside %s, ready after %.0f s\n", network.name, on.fast().c_str(),
                 on.slow.c_str(), seconds());
    nlohmann::json row{{"model", network.name}, {"batch", network.batch}, {"slow", on.slow}};
    for (const auto& [mode, planner] : std::initializer_list<std::pair<const char*, const char*>>{
             {"none", "ca-none"}, {"L", "ca-l"}, {"LM", "ca-lm"}, {"LMP", "ca-lmp"}, {"async-LMP", nullptr}})
      row["modes"].push_back(mode_row(on, mode, planner, request.quick ? 2 : 9));
    std::fprintf(stderr, "%s: modes after %.0f s; kernels are measured for the prediction of memory mode\n",
                 network.name, seconds());
    row["memory_mode"] = predicted_memory_mode(on);
    std::fprintf(stderr, "%s: done after %.0f s\n", network.name, seconds());
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace terrace::bench

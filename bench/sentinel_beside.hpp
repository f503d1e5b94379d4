// SPDX-License-Identifier: Apache-2.0
// Why executed steps wait for transfers that were predicted to be hidden: the same plan with one thing taken
// out at a time.
//
//   as it is       kernels and transfers share the rate of emulated memory
//   own rate       kernels that use emulated memory are charged at a rate of their own, beside the copies'
//   one thread     kernels leave a core to the copies; planned from their times with one thread
#pragma once

#include "planned_run.hpp"
#include "sentinel_where.hpp"
#include "tiers/pacer.hpp"

namespace terrace::bench {

/// Emulated memory that grants kernels its full rate while copies have theirs, as the simulator does.
class OwnRateForKernels final : public Tier {
 public:
  explicit OwnRateForKernels(std::unique_ptr<Tier> tier)
      : tier_(std::move(tier)),
        kernels_(description().read_rate, description().write_rate, description().latency, steady_clock()) {}

  const TierDescription& description() const noexcept override { return tier_->description(); }
  std::byte* memory() noexcept override { return tier_->memory(); }
  void pace(Access access, Bytes amount, Seconds took) override { tier_->pace(access, amount, took); }
  void charge(Bytes read, Bytes written, Seconds took, std::uint64_t accesses) override {
    kernels_.hold(read, written, took, accesses);
  }

 private:
  std::unique_ptr<Tier> tier_;
  Pacer kernels_;
};

inline Result<std::unique_ptr<Tier>> open_with_own_rate(const TierSpec& spec) {
  auto tier = open_tier(spec);
  if (!tier || spec.kind != TierKind::emulated) return tier;
  return std::unique_ptr<Tier>(std::make_unique<OwnRateForKernels>(std::move(*tier)));
}

/// A run, the one with everything in fast memory that it is compared with, and what is different in it.
struct BesideRun {
  const char* what;
  PlannedRun* fast;
  std::unique_ptr<PlannedRun> run;
  std::vector<StepParts> parts = {};
  std::vector<double> usual = {};  ///< the other's step of the same round
};

inline json beside_rows(const Executed& one, const std::string& slow, const std::string& planner,
                        int rounds) {
  const auto task = [&](const json& fast, std::string_view of, unsigned threads) {
    json made = executed_task(one, slow, fast, of);
    made["threads"] = threads;
    return made;
  };
  const unsigned threads = std::thread::hardware_concurrency();
  TrainerOptions own_rate = training_options();
  own_rate.open = open_with_own_rate;
  const auto fast = start_run(task("110%", "all-fast", threads)),
             fast_alone = start_run(task("110%", "all-fast", 1));
  std::vector<BesideRun> runs;
  runs.push_back({"as it is", fast.get(), start_run(task("20%", planner, threads))});
  runs.push_back({"own rate", fast.get(), start_run(task("20%", planner, threads), own_rate)});
  runs.push_back({"one thread", fast_alone.get(), start_run(task("20%", planner, 1))});
  constexpr int kWarmUp = 2;
  for (int i = 0; i < rounds + kWarmUp; ++i) {
    for (PlannedRun* run : {fast.get(), fast_alone.get()}) run->step();
    for (BesideRun& one_run : runs) {
      one_run.run->step();
      if (i < kWarmUp) continue;
      const Plan& plan = one_run.run->plan;
      const Timeline& timeline = one_run.run->timeline();
      one_run.parts.push_back(parts_of(one_run.run->trainer.program().graph, plan, timeline,
                                       std::vector<std::size_t>(plan.instructions.size())));
      one_run.usual.push_back(one_run.fast->seconds.back());
    }
  }
  json rows = json::array();
  for (const BesideRun& run : runs) {
    const Graph& graph = run.run->trainer.program().graph;
    const Timeline simulated = simulate(graph, run.run->machine, run.run->profile, run.run->plan);
    const double profiled = KernelClock(graph, run.run->machine, run.run->profile).fast_step().count();
    const StepParts predicted = parts_of(graph, run.run->plan, simulated,
                                         std::vector<std::size_t>(run.run->plan.instructions.size()));
    std::vector<double> speeds, waits, kernels;
    for (std::size_t i = 0; i < run.parts.size(); ++i) {
      speeds.push_back(run.usual[i] / run.parts[i].step);
      waits.push_back(run.parts[i].waits / run.usual[i]);
      kernels.push_back((run.parts[i].step - run.parts[i].waits) / run.usual[i] - 1);
    }
    const double predicted_kernels = (predicted.step - predicted.waits) / profiled - 1;
    const double out = middle(run.parts, [](const StepParts& p) { return p.out; });
    rows.push_back({{"model", one.model},
                    {"batch", one.batch},
                    {"planner", planner},
                    {"what", run.what},
                    {"speed", median(speeds)},
                    {"spread", spread(speeds)},
                    {"predicted_speed", profiled / predicted.step},
                    {"kernels_slower", median(kernels)},
                    {"predicted_kernels_slower", predicted_kernels},
                    {"waiting", median(waits)},
                    {"waiting_spread", spread(waits)},
                    {"predicted_waiting", predicted.waits / profiled},
                    {"out", out},
                    {"predicted_out", predicted.out}});
    print_line(fmt::format(
        "| {} {} | {} | {} | {:.1f}% ({:.1f} to {:.1f}), {:.1f}% | {:.1f}%, {:.1f}% | "
        "{:.1f}% ({:.1f} to {:.1f}), {:.1f}% | {:.2f}, {:.2f} |",
        one.model, one.batch, planner, run.what, 100 * median(speeds), 100 * quantile(speeds, 0),
        100 * quantile(speeds, 1), 100 * profiled / predicted.step, 100 * median(kernels),
        100 * predicted_kernels, 100 * median(waits), 100 * quantile(waits, 0), 100 * quantile(waits, 1),
        100 * predicted.waits / profiled, out / 1e9, predicted.out / 1e9));
  }
  return rows;
}

inline json executed_beside(bool quick) {
  const ScratchFolder scratch("build/bench/sentinel-" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1);
  const Executed one{"mobilenet", 8};
  const Machine here = this_computer(one);
  const std::string slow = emulated_as(kOptane, here);
  prepare_caches(executed_task(one, slow, "100%", ""));
  print_head(
      fmt::format("Waiting beside kernels, executed and as predicted; {} as {}", kOptane, slow),
      "| model, batch | planner | what is different | share of fast-only | kernels slower by | waiting "
      "| GB/s out |");
  json rows = json::array();
  for (const char* planner : {"sentinel", "sentinel+"})
    for (json& row : beside_rows(one, slow, planner, quick ? 3 : 11)) rows.push_back(row);
  return rows;
}

}  // namespace terrace::bench

// SPDX-License-Identifier: Apache-2.0
// Where executed steps lose what was not predicted: kernels by where their operands lie and whether copies
// run beside them, waits, and the rates of both links, each as predicted and as executed.
#pragma once

#include <array>
#include <map>

#include "planned_run.hpp"
#include "sentinel_executed.hpp"

namespace terrace::bench {

/// What kernels took in one step, by their kind; waits; and the rate of each link while it is busy.
struct StepParts {
  /// Kernels with all operands in fast memory, alone and beside a copy; with some in slow memory, likewise.
  std::array<double, 4> kernels = {};
  double step = 0, waits = 0, out = 0, in = 0;
};

inline bool is_beside(const Interval& kernel, const std::vector<Interval>& copies) {
  return std::any_of(copies.begin(), copies.end(), [&](const Interval& copy) {
    return std::min(copy.end, kernel.end) - std::max(copy.begin, kernel.begin) > 0.1 * kernel.length();
  });
}

/// The kind of each run of a kernel. Which copies run beside it is taken from one step for all, so that the
/// same kernels are compared.
inline std::vector<std::size_t> kinds_of(const Plan& plan, const Timeline& step) {
  const auto copies = transfers(plan, step);
  std::vector<std::size_t> kinds(plan.instructions.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto* run = std::get_if<terrace::Run>(&plan.instructions[i]);
    if (run == nullptr) continue;
    const bool slow =
        std::any_of(run->tiers.begin(), run->tiers.end(), [](TierId tier) { return tier != TierId{0}; });
    kinds[i] = (slow ? 2 : 0) + (is_beside(step.instructions[i], copies) ? 1 : 0);
  }
  return kinds;
}

inline StepParts parts_of(const Graph& graph, const Plan& plan, const Timeline& step,
                          const std::vector<std::size_t>& kinds) {
  StepParts parts;
  parts.step = step.step.count();
  parts.waits = step.exposed.count();
  std::array<double, 2> bytes = {}, busy = {};
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const double took = step.instructions[i].length().count();
    if (std::holds_alternative<terrace::Run>(plan.instructions[i])) parts.kernels[kinds[i]] += took;
    const auto* copy = std::get_if<Copy>(&plan.instructions[i]);
    if (copy == nullptr) continue;
    const std::size_t way = copy->from == TierId{0} ? 0 : 1;
    busy[way] += took;
    for (const TensorId tensor : copy->tensors) bytes[way] += static_cast<double>(graph[tensor].bytes.count);
  }
  parts.out = busy[0] > 0 ? bytes[0] / busy[0] : 0;
  parts.in = busy[1] > 0 ? bytes[1] / busy[1] : 0;
  return parts;
}

inline double middle(const std::vector<StepParts>& steps, const std::function<double(const StepParts&)>& of) {
  std::vector<double> all;
  for (const StepParts& one : steps) all.push_back(of(one));
  return median(all);
}

/// What each kernel takes with everything in fast memory, in the same minutes.
class FastKernels {
 public:
  FastKernels(const Executed& one, const std::string& slow)
      : run_(start_run(executed_task(one, slow, "110%", "all-fast"))) {}

  void step() {
    run_->step();
    seconds_.push_back(run_->timeline().step.count());
    for (std::size_t i = 0; i < run_->plan.instructions.size(); ++i)
      if (const auto* kernel = std::get_if<terrace::Run>(&run_->plan.instructions[i]))
        took_[kernel->kernel.index].push_back(run_->timeline().instructions[i].length().count());
  }
  void forget() {
    seconds_.clear();
    took_.clear();
  }
  double step_seconds() const { return median(seconds_); }
  double kernel(KernelId id) const { return median(took_.at(id.index)); }

 private:
  std::unique_ptr<PlannedRun> run_;
  std::vector<double> seconds_;
  std::map<std::uint32_t, std::vector<double>> took_;
};

/// Of kernels in both runs, what those of each kind take with everything in fast memory.
inline std::array<double, 4> fast_parts(const FastKernels& fast, const Plan& plan,
                                        const std::vector<std::size_t>& kinds) {
  std::array<double, 4> sums = {};
  for (std::size_t i = 0; i < plan.instructions.size(); ++i)
    if (const auto* kernel = std::get_if<terrace::Run>(&plan.instructions[i]))
      sums[kinds[i]] += fast.kernel(kernel->kernel);
  return sums;
}

/// What the profile says of the same.
inline std::array<double, 4> profiled_parts(const Graph& graph, const PlannedRun& run,
                                            const std::vector<std::size_t>& kinds) {
  const KernelClock clock(graph, run.machine, run.profile);
  std::array<double, 4> sums = {};
  for (std::size_t i = 0; i < run.plan.instructions.size(); ++i)
    if (const auto* kernel = std::get_if<terrace::Run>(&run.plan.instructions[i]))
      sums[kinds[i]] += clock.fast(kernel->kernel).count();
  return sums;
}

/// For each kind of kernels: their share of the step with all memory, and what they take beyond it, predicted
/// and executed. Predicted shares are of the profile's step, executed ones of the measured step.
inline json where_row(const Executed& one, FastKernels& fast, const std::string& slow,
                      const std::string& planner, int rounds) {
  const auto run = start_run(executed_task(one, slow, "20%", planner));
  const Graph& graph = run->trainer.program().graph;
  const Timeline simulated = simulate(graph, run->machine, run->profile, run->plan);
  const auto kinds = kinds_of(run->plan, simulated);
  const StepParts predicted = parts_of(graph, run->plan, simulated, kinds);
  std::vector<StepParts> steps;
  for (int i = 0; i < rounds + 2; ++i) {
    fast.step();
    run->step();
    steps.push_back(parts_of(graph, run->plan, run->timeline(), kinds));
    if (i > 1) continue;
    fast.forget();
    steps.clear();
  }
  const double usual = fast.step_seconds();
  const double profiled = KernelClock(graph, run->machine, run->profile).fast_step().count();
  const auto measured_alone = fast_parts(fast, run->plan, kinds);
  const auto profiled_alone = profiled_parts(graph, *run, kinds);
  std::vector<double> speeds;
  for (const StepParts& step : steps) speeds.push_back(usual / step.step);
  json row{{"model", one.model},
           {"batch", one.batch},
           {"planner", planner},
           {"bound", profiled / run->plan.prediction.bound.count()},
           {"predicted", profiled / predicted.step},
           {"executed", median(speeds)},
           {"spread", spread(speeds)},
           {"profile_over_measured", profiled / usual}};
  std::string line = fmt::format("| {} {} | {} | {:.1f}% | {:.1f}% | {:.1f}% ({:.1f} to {:.1f}) | {:.2f} |",
                                 one.model, one.batch, planner, 100 * row["bound"].get<double>(),
                                 100 * row["predicted"].get<double>(), 100 * median(speeds),
                                 100 * quantile(speeds, 0), 100 * quantile(speeds, 1), profiled / usual);
  const char* names[] = {"fast_alone", "fast_beside", "slow_alone", "slow_beside"};
  for (std::size_t kind = 0; kind < 4; ++kind) {
    const double executed = middle(steps, [kind](const StepParts& p) { return p.kernels[kind]; });
    const double extra = (executed - measured_alone[kind]) / usual;
    const double expected = (predicted.kernels[kind] - profiled_alone[kind]) / profiled;
    row[names[kind]] = {
        {"share", measured_alone[kind] / usual}, {"predicted", expected}, {"executed", extra}};
    line += fmt::format(" {:.0f}: {:+.1f}, {:+.1f} |", 100 * measured_alone[kind] / usual, 100 * expected,
                        100 * extra);
  }
  const double waits = middle(steps, [](const StepParts& p) { return p.waits; });
  row["waits"] = {{"predicted", predicted.waits / profiled}, {"executed", waits / usual}};
  line += fmt::format(" {:.1f}, {:.1f} |", 100 * predicted.waits / profiled, 100 * waits / usual);
  for (const auto& [name, of] : {std::pair{"out", &StepParts::out}, std::pair{"in", &StepParts::in}}) {
    const double executed = middle(steps, [of = of](const StepParts& p) { return p.*of; });
    row[name] = {{"predicted", predicted.*of}, {"executed", executed}};
    line += fmt::format(" {:.1f}, {:.1f} |", 1e-9 * predicted.*of, 1e-9 * executed);
  }
  print_line(line);
  return row;
}

/// What calibration found of the links: most of what is lost beside copies follows from it.
inline void print_links(const json& task) {
  const Graph graph = graph_of(task);
  const Machine machine = prepare(workload_request(task, graph)).value().machine;
  for (const Link& link : machine.links)
    print_line(
        fmt::format("{} to {}: {:.2f} GB/s, both ways {:.2f} of it, beside kernels {:.2f}; kernels lose "
                    "{:.2f}; threads {}",
                    machine[link.from].name, machine[link.to].name, link.rates.back().rate.value / 1e9,
                    link.both_ways, link.while_computing, link.compute_loss, link.threads));
}

inline json executed_where(bool quick) {
  const ScratchFolder scratch("build/bench/sentinel-" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1);
  const std::vector<Executed> models =
      quick ? executed_models(quick) : std::vector<Executed>{{"resnet50", 4}, {"mobilenet", 8}};
  const Machine here = this_computer(models.front());
  const std::string slow = emulated_as(kOptane, here);
  print_head(
      fmt::format(
          "Where executed steps lose time; {} as {} beside {:.1f} GB/s read, {:.1f} written. Shares of the "
          "step with all memory, that of the kernels first, then predicted, executed",
          kOptane, slow, here.tiers[0].read.value / 1e9, here.tiers[0].write.value / 1e9),
      "| model, batch | planner | bound, predicted, executed | fast alone | fast beside copies | slow alone "
      "| "
      "slow beside copies | waits | GB/s out | GB/s in |");
  json rows = json::array();
  for (const Executed& one : models) {
    const json task = executed_task(one, slow, "100%", "");
    prepare_caches(task);
    print_links(task);
    FastKernels fast(one, slow);
    for (const char* planner : {"sentinel", "sentinel+", "best"})
      rows.push_back(where_row(one, fast, slow, planner, quick ? 3 : 7));
  }
  return rows;
}

}  // namespace terrace::bench

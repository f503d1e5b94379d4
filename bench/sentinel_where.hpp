// SPDX-License-Identifier: Apache-2.0
// Where executed steps lose what was not predicted: kernels by where their operands lie and whether copies
// run beside them, waits, and the rates of both links, each as predicted and as executed.
#pragma once

#include <array>

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

/// What the kernels of each kind take with everything in fast memory, by the profile.
inline std::array<double, 4> fast_parts(const Graph& graph, const PlannedRun& run,
                                        const std::vector<std::size_t>& kinds) {
  const KernelClock clock(graph, run.machine, run.profile);
  std::array<double, 4> sums = {};
  for (std::size_t i = 0; i < run.plan.instructions.size(); ++i)
    if (const auto* kernel = std::get_if<terrace::Run>(&run.plan.instructions[i]))
      sums[kinds[i]] += clock.fast(kernel->kernel).count();
  return sums;
}

inline json where_row(const Executed& one, const std::string& slow, const std::string& planner, int rounds) {
  const auto run = start_run(executed_task(one, slow, "20%", planner));
  const Graph& graph = run->trainer.program().graph;
  const Timeline simulated = simulate(graph, run->machine, run->profile, run->plan);
  const auto kinds = kinds_of(run->plan, simulated);
  const StepParts predicted = parts_of(graph, run->plan, simulated, kinds);
  std::vector<StepParts> steps;
  for (int i = 0; i < rounds + 1; ++i) {
    run->step();
    if (i > 0) steps.push_back(parts_of(graph, run->plan, run->timeline(), kinds));
  }
  const double fast = KernelClock(graph, run->machine, run->profile).fast_step().count();
  const auto of_fast = fast_parts(graph, *run, kinds);
  json row{{"model", one.model},
           {"batch", one.batch},
           {"planner", planner},
           {"fast_only", fast},
           {"bound", run->plan.prediction.bound.count()}};
  std::string line = fmt::format("| {} {} | {} | {:.1f}%, {:.1f}%, {:.1f}% |", one.model, one.batch, planner,
                                 100 * fast / run->plan.prediction.bound.count(), 100 * fast / predicted.step,
                                 100 * fast / middle(steps, [](const StepParts& p) { return p.step; }));
  const auto both = [&](const char* name, const std::function<double(const StepParts&)>& of, double scale) {
    const double executed = middle(steps, of);
    row[name] = {of(predicted), executed};
    line += fmt::format(" {:.1f}, {:.1f} |", scale * of(predicted), scale * executed);
  };
  const char* names[] = {"fast_alone", "fast_beside", "slow_alone", "slow_beside"};
  for (std::size_t kind = 0; kind < 4; ++kind) {
    line += fmt::format(" {:.1f}:", 100 * of_fast[kind] / fast);
    both(
        names[kind], [kind](const StepParts& p) { return p.kernels[kind]; }, 100 / fast);
  }
  both(
      "waits", [](const StepParts& p) { return p.waits; }, 100 / fast);
  both(
      "out", [](const StepParts& p) { return p.out; }, 1e-9);
  both(
      "in", [](const StepParts& p) { return p.in; }, 1e-9);
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
    for (const char* planner : {"sentinel", "sentinel+", "best", kAutoTmSync})
      rows.push_back(where_row(one, slow, planner, quick ? 3 : 7));
  }
  return rows;
}

}  // namespace terrace::bench

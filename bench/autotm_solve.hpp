// Solves one placement problem of AutoTM with our solver and with CBC, and measures how long each takes to
// prove a gap.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/stop_after.hpp"
#include "graph/passes.hpp"
#include "optim/cbc.hpp"
#include "planners/autotm/model/program.hpp"
#include "planners/autotm/solver/fast.hpp"
#include "report.hpp"
#include "terrace/lifetimes.hpp"

namespace terrace::bench {

using nlohmann::json;

/// The options of one run of the benchmark.
struct AutotmRequest {
  bool quick = false;
  bool full = false;    ///< whether CBC is asked for 0.1%, too
  std::string only;     ///< parts, with commas between and around them; empty means all
  std::string network;  ///< empty means all
  Seconds cbc{60};      ///< CBC's time limit for a row; 0 leaves CBC out
  int rounds = 3;       ///< rounds of our solver to 1%
};

constexpr double kUsualGap = 0.01, kSmallGap = 0.001;

/// A graph with a share of its peak as fast memory on some machine. It owns what a request refers to.
class AutotmProblem {
 public:
  AutotmProblem(Graph graph, Machine machine) : AutotmProblem(std::move(graph), std::move(machine), {}) {}
  AutotmProblem(Graph graph, Machine machine, std::optional<Profile> profile)
      : graph_(std::move(graph)),
        machine_(std::move(machine)),
        profile_(profile ? *std::move(profile) : estimate(graph_, machine_)),
        peak_(Lifetimes(graph_).peak_bytes()) {}

  const Graph& graph() const { return graph_; }

  /// Returns the request for `slow`:1 in the paper's notation: one part in `slow` + 1 is fast memory.
  PlanRequest request(unsigned slow) const {
    PlanRequest request{graph_, machine_, profile_, {}};
    for (const MachineTier& tier : machine_.tiers) request.budget.push_back(tier.capacity);
    request.budget[0] = std::min(request.budget[0], peak_ / (slow + 1));
    return request;
  }
  /// Returns the same with half of the peak in the second tier.
  PlanRequest three_tiers(unsigned slow) const {
    PlanRequest request = this->request(slow);
    request.budget[1] = std::min(request.budget[1], peak_ / 2);
    return request;
  }

 private:
  Graph graph_;
  Machine machine_;
  Profile profile_;
  Bytes peak_;
};

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the processor time of this process on all its threads, which other programs disturb least.
inline double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// The outcome of one solver on one problem.
struct Outcome {
  double seconds = 0, gap = 0;
  bool reached = false;
  json row() const { return {{"seconds", seconds}, {"gap", gap}, {"reached", reached}}; }
};

/// Checks a solution: its time must be the one that was reported, and its memory must be within the capacity.
inline void require_valid(const autotm::Instance& instance, const autotm::Solution& solution, Seconds time) {
  if (!is_within_capacities(instance, solution))
    throw std::runtime_error("a solution takes more than the capacity");
  if (step_time(instance, solution) != time) throw std::runtime_error("a solution's time is another");
}

inline Outcome solve_ours(const autotm::Instance& instance, double gap, Seconds limit,
                          std::uint64_t& iterations) {
  Outcome outcome;
  autotm::FastOptions options;
  options.gap = gap;
  options.branches = true;
  options.threads = 2;
  std::optional<autotm::FastResult> result;
  const StopAfter stop(limit);
  options.stop = stop.token();
  outcome.seconds = seconds_of([&] { result = solve_fast(instance, options).value(); });
  require_valid(instance, result->solution, result->time);
  outcome.gap = result->gap();
  outcome.reached = result->within_gap;
  iterations = result->iterations;
  return outcome;
}

/// Solves several times; returns the median of the seconds and whether every run proved the gap.
inline json solve_ours(const autotm::Instance& instance, double gap, Seconds limit, int rounds) {
  std::vector<double> seconds, processor, gaps;
  bool reached = true;
  std::uint64_t iterations = 0;
  for (int i = 0; i < rounds; ++i) {
    const double before = processor_seconds();
    const Outcome one = solve_ours(instance, gap, limit, iterations);
    processor.push_back(processor_seconds() - before);
    seconds.push_back(one.seconds);
    gaps.push_back(one.gap);
    reached = reached && one.reached;
  }
  json row = Outcome{median(seconds), median(gaps), reached}.row();
  row["spread"] = spread(seconds);
  row["processor_seconds"] = median(processor);
  row["iterations_per_second"] = static_cast<double>(iterations) / processor.back();
  return row;
}

/// Returns null where this build has no CBC or CBC is left out. Without a solution its gap is null.
inline json solve_cbc(const PlanRequest& request, const autotm::Instance& instance, double gap,
                      Seconds limit) {
  if (!optim::has_cbc() || limit.count() <= 0) return nullptr;
  Outcome outcome;
  bool found = false;
  outcome.seconds = seconds_of([&] {
    const auto solved = solve_exactly(request, instance, autotm::Linking::tight, {gap, limit});
    found = solved.ok();
    if (!found) return;
    outcome.gap = solved->gap();
    outcome.reached = solved->proven;
  });
  json row = outcome.row();
  if (!found) row["gap"] = nullptr;
  return row;
}

/// Prints the seconds if the gap was proved, with processor seconds where known; otherwise the gap at the
/// limit.
inline std::string text_of(const json& outcome) {
  if (outcome.is_null()) return "not asked";
  if (outcome.at("reached").get<bool>() && outcome.contains("processor_seconds"))
    return fmt::format("{:.2f} ({:.2f})", outcome.at("seconds").get<double>(),
                       outcome.at("processor_seconds").get<double>());
  if (outcome.at("reached").get<bool>()) return fmt::format("{:.2f}", outcome.at("seconds").get<double>());
  if (outcome.at("gap").is_null()) return fmt::format(">{:.0f}, none", outcome.at("seconds").get<double>());
  return fmt::format(">{:.0f}, {:.2f}%", outcome.at("seconds").get<double>(),
                     100 * outcome.at("gap").get<double>());
}

/// Solves one problem with all solvers and prints a row of a table that starts with `label`.
inline json solve_row(const AutotmRequest& asked, const PlanRequest& request, autotm::Formulation formulation,
                      const std::string& label, const std::string& paper, Seconds usual_limit,
                      Seconds small_limit) {
  std::optional<autotm::Instance> instance;
  const double making =
      seconds_of([&] { instance = make_instance(request, formulation, request.budget[0]).value(); });
  json row{{"row", label}, {"kernels", instance->kernels.size()}, {"instance_seconds", making}};
  row["ours"] = solve_ours(*instance, kUsualGap, usual_limit, asked.rounds);
  row["ours_small"] = solve_ours(*instance, kSmallGap, small_limit, 1);
  row["cbc"] = solve_cbc(request, *instance, kUsualGap, asked.cbc);
  row["cbc_small"] = asked.full ? solve_cbc(request, *instance, kSmallGap, asked.cbc) : json(nullptr);
  print_line(fmt::format("| {} | {} | {} | {} | {} | {} | {} | {:.0f} |", label, instance->kernels.size(),
                         text_of(row["ours"]), text_of(row["ours_small"]), text_of(row["cbc"]),
                         text_of(row["cbc_small"]), paper,
                         row["ours_small"]["iterations_per_second"].get<double>()));
  return row;
}

constexpr const char* kColumns =
    "| problem | kernels | ours, s to 1% (of the processor) | ours, s to 0.1% | CBC, s to 1% | CBC, s to "
    "0.1% | paper, s | "
    "iterations/s of the processor |";

}  // namespace terrace::bench

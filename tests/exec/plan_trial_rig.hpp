// A graph, a budget and made-up times of steps to try plans with.
#pragma once

#include <algorithm>
#include <functional>

#include "exec/planned.hpp"
#include "plan/reach.hpp"
#include "terrace/planner.hpp"
#include "train/plan_trial.hpp"

namespace terrace {

/// Links so slow that tensors come late, and memory behind them that kernels can use.
inline Machine late_machine(bool addressable = true) {
  Machine machine = two_tiers(addressable ? "fake:1GiB" : "fake:1GiB,blocks", {64}, {512}, addressable);
  machine.compute = {"declared", 1, 1e9};
  for (Link& link : machine.links) link.rates = {{Bytes{4096}, BytesPerSecond{1e8}}};
  return machine;
}

/// A graph within a budget, and what the planner predicts to be best.
struct TrialSubject {
  Machine machine;
  std::string planner;
  Program program;
  Profile profile;
  std::vector<Bytes> budget;
  std::optional<VerifiedPlan> predicted;

  explicit TrialSubject(Machine on = late_machine(), std::string by = "sentinel+in_place=off+interval=1",
                        const Graph& graph = small_resnet(), std::uint64_t tenths = 6)
      : machine(std::move(on)), planner(std::move(by)), program(compile(graph, 1).value()) {
    profile = estimate(program.graph, machine);
    for (const MachineTier& tier : machine.tiers) budget.push_back(tier.capacity);
    budget[0] = round_up(program.peak * tenths / 10, Bytes{64});
    plan();
  }

  void plan() {
    Plan made = make_plan(planner, {program.graph, machine, profile, budget}).value();
    trim_budget(program.graph, machine, made);
    predicted = verify(program.graph, machine, made).value();
  }

  PlanTrial::Request request(const std::filesystem::path& store = {}) const {
    return {program.graph, machine, profile, budget, planner, *predicted, 1000, "processor", store};
  }
};

/// Made-up seconds of a step under a plan of this name.
using StepTime = std::function<double(const std::string& planner)>;

inline std::ptrdiff_t leaving(const std::string& planner) {
  const std::size_t list = planner.find("leave:");
  return list == std::string::npos ? 0 : 1 + std::count(planner.begin() + list, planner.end(), ',');
}
inline bool only_predicts(const std::string& planner) { return planner.find("+end=") == std::string::npos; }

inline double leaving_is_faster(const std::string& planner) {
  return only_predicts(planner) ? 1000 : 100 - static_cast<double>(leaving(planner));
}
inline double waiting_is_faster(const std::string& planner) {
  return only_predicts(planner) ? 1000 : 100 + static_cast<double>(leaving(planner));
}
inline double predicting_is_faster(const std::string& planner) { return only_predicts(planner) ? 1 : 100; }

inline void run(PlanTrial& trial, const StepTime& time) {
  while (!trial.done()) trial.observe(Seconds{time(trial.plan()->planner)});
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// One plan of a task (planned_training.hpp), carried out in this process, with what each step took.
#pragma once

#include <chrono>

#include "planned_training.hpp"

namespace terrace::bench {

struct PlannedRun {
  Machine machine;
  Profile profile;
  Plan plan;
  Trainer trainer;
  SyntheticData data;
  std::vector<double> seconds = {};  ///< by step

  const Timeline& timeline() const { return trainer.timeline(); }

  void step() {
    data.fill(trainer.steps_done(), trainer);
    const auto start = std::chrono::steady_clock::now();
    trainer.step();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
};

inline std::unique_ptr<PlannedRun> start_run(const nlohmann::json& task,
                                             const TrainerOptions& options = training_options()) {
  auto [workload, budget] = fitted(task);
  Profile profile = profile_of(workload, budget).value();
  Planned planned = plan_of(workload, profile, budget, task.at("planner").get<std::string>()).value();
  const Graph graph = workload.graph();
  Trainer trainer =
      Trainer::start(std::move(workload.program), planned.plan, workload.machine, options).value();
  return std::unique_ptr<PlannedRun>(new PlannedRun{std::move(workload.machine), std::move(profile),
                                                    planned.plan.plan(), std::move(trainer),
                                                    SyntheticData(graph, training_options().seed)});
}

/// The time in which at least one of these was going on.
inline Seconds covered(std::vector<Interval> all) {
  std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  Seconds sum{0}, end{0};
  for (const Interval& one : all) {
    sum += std::max(Seconds{0}, one.end - std::max(one.begin, end));
    end = std::max(end, one.end);
  }
  return sum;
}

/// The transfers of a plan in a step, over one link or over all.
inline std::vector<Interval> transfers(const Plan& plan, const Timeline& step) {
  std::vector<Interval> copies;
  for (std::size_t i = 0; i < plan.instructions.size(); ++i)
    if (std::holds_alternative<Copy>(plan.instructions[i])) copies.push_back(step.instructions[i]);
  return copies;
}

}  // namespace terrace::bench

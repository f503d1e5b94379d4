// Our training as a contender (contender.hpp): with all memory, or in a share of it under a plan.
//
// The task is one JSON object, so that it can be passed as one argument:
//   {"model": "resnet50", "batch": 32, "sequence": null, "threads": 2,
//    "fast": "20%", "slow": null, "planner": "best"}
// If `fast` is null, the run has all memory and no plan. If `planner` is null, it is the same but with
// kernels split as for `fast`, because sums over parts round differently. If `slow` is null, the slow tier is
// a file in the cache folder.
#pragma once

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/memory_limit.hpp"
#include "terrace/models.hpp"
#include "terrace/pipeline.hpp"
#include "terrace/workload.hpp"
#include "train/synthetic_data.hpp"

namespace terrace::bench {

inline Graph graph_of(const nlohmann::json& task) {
  ModelOptions options;
  options.batch = task.at("batch").get<std::int64_t>();
  if (!task.at("sequence").is_null()) options.sequence = task.at("sequence").get<std::int64_t>();
  return build_model(task.at("model").get<std::string>(), options).value();
}

inline WorkloadRequest workload_request(const nlohmann::json& task, const Graph& graph) {
  WorkloadRequest request{.graph = graph, .threads = task.at("threads").get<unsigned>()};
  if (!task.at("slow").is_null()) request.slow = {task.at("slow").get<std::string>()};
  return request;
}

/// Returns the resident bytes and restarts the peak from there.
inline Bytes restart_peak_resident() {
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak_resident();
}

inline nlohmann::json moved_json(const std::vector<Traffic>& moved, const Machine& machine) {
  nlohmann::json all = nlohmann::json::object();
  for (const Traffic& one : moved)
    all[machine[one.from].name + " > " + machine[one.to].name] = one.bytes.count;
  return all;
}

/// Returns the memory of a plan: its budgets in addressable tiers.
inline Bytes planned_memory(const Plan& plan, const Machine& machine) {
  Bytes sum{0};
  for (std::size_t i = 0; i < plan.budget.size(); ++i) {
    if (machine.tiers[i].addressable) sum += plan.budget[i];
  }
  return sum;
}

struct Training {
  Machine machine;
  Trainer trainer;
  nlohmann::json facts;  ///< figures known before the first step
};

/// The learning rate is small, so that a repeated batch does not reach a loss of zero.
inline TrainerOptions training_options() { return {.seed = 1, .learning_rate = 0.001F}; }

struct Fitted {
  Workload workload;
  std::vector<Bytes> budget;
};

inline Fitted fitted(const nlohmann::json& task) {
  const Graph graph = graph_of(task);
  const WorkloadRequest request = workload_request(task, graph);
  Workload whole = prepare(request).value();
  std::vector<Bytes> budget = budget_of(whole, task.at("fast").get<std::string>()).value();
  Workload workload = fit(request, std::move(whole), budget[0]).value();
  return {std::move(workload), std::move(budget)};
}

inline Training start_unlimited(const nlohmann::json& task) {
  Program program = task.at("fast").is_null()
                        ? compile(graph_of(task), task.at("threads").get<unsigned>()).value()
                        : fitted(task).workload.program;
  const Bytes before = restart_peak_resident();
  const nlohmann::json facts{{"fixed_bytes", before.count}, {"planned_memory_bytes", program.arena.count}};
  return {{}, Trainer::start(std::move(program), training_options()).value(), facts};
}

inline Training start_planned(const nlohmann::json& task) {
  auto [workload, budget] = fitted(task);
  const Profile profile = profile_of(workload, budget).value();
  const Planned planned = plan_of(workload, profile, budget, task.at("planner").get<std::string>()).value();
  const Prediction& predicted = planned.plan->prediction;
  const Bytes before = restart_peak_resident();
  const nlohmann::json facts{
      {"fixed_bytes", before.count},
      {"planned_memory_bytes", planned_memory(planned.plan.plan(), workload.machine).count},
      {"budget_bytes", planned.fast.count},
      {"least_budget_bytes", planned.least.bytes.count},
      {"predicted_seconds", predicted.step.count()},
      {"predicted_exposed_seconds", predicted.exposed.count()},
      {"bound_seconds", predicted.bound.count()},
      {"fast_only_seconds", KernelClock(workload.graph(), workload.machine, profile).fast_step().count()},
      {"plan_seconds", planned.planning.count()},
      {"split_kernels", workload.split_kernels}};
  Trainer trainer =
      Trainer::start(std::move(workload.program), planned.plan, workload.machine, training_options()).value();
  return {std::move(workload.machine), std::move(trainer), facts};
}

inline nlohmann::json step(Training& training, SyntheticData& data) {
  Trainer& trainer = training.trainer;
  data.fill(trainer.steps_done(), trainer);
  const auto start = std::chrono::steady_clock::now();
  trainer.step();
  const Seconds took = std::chrono::steady_clock::now() - start;
  nlohmann::json answer{{"seconds", took.count()},
                        {"loss", trainer.result(0)[0]},
                        {"exposed_seconds", trainer.timeline().exposed.count()}};
  if (!training.machine.tiers.empty())
    answer["moved_bytes"] = moved_json(trainer.timeline().moved, training.machine);
  return answer;
}

/// Answers `step` and `memory` until `quit` or the end of the input.
inline void obey(Training training) {
  const Program& program = training.trainer.program();
  SyntheticData data(program.graph, training_options().seed);
  training.facts["parameters"] = parameters(program.graph);
  training.facts["graph_peak_bytes"] = program.peak.count;
  std::cout << training.facts << std::endl;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    if (line == "memory") {
      std::cout << nlohmann::json{{"peak_rss_bytes", peak_resident().count}} << std::endl;
    } else {
      std::cout << step(training, data) << std::endl;
    }
  }
}

/// Reports that it is ready, or why it refuses, and then answers requests.
inline void obey(const nlohmann::json& task) {
  try {
    obey(task.at("fast").is_null() || task.at("planner").is_null() ? start_unlimited(task)
                                                                   : start_planned(task));
  } catch (const ResultError& error) {
    std::cout << nlohmann::json{{"refused", error.what()}} << std::endl;
  }
}

/// The main function of a benchmark that starts itself as its own contenders.
template <class Run>
int contender_main(int argc, char** argv, Run run) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() == 2 && arguments[0] == "--contender") {
      obey(nlohmann::json::parse(arguments[1]));
    } else {
      run(arguments);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

}  // namespace terrace::bench

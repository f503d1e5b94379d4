// SPDX-License-Identifier: Apache-2.0
// Executes 000 Fig. 10 on this computer: small batches in its memory and in emulated slower memory.
//
// The emulated tier's rates are chosen so that the ratio of slow to fast is that of the papers' machines; the
// latency is the papers' own. Kernels here need more or less time for their bytes than there, so that shares
// differ from those of the papers' machines, too.
#pragma once

#include <thread>

#include "contender.hpp"
#include "planned_training.hpp"
#include "sentinel_simulated.hpp"

namespace terrace::bench {

struct Executed {
  std::string model;
  std::int64_t batch;
};

/// Returns models whose graphs take no more than a gigabyte.
inline std::vector<Executed> executed_models(bool quick) {
  if (quick) return {{"resnet32", 64}};
  return {{"resnet32", 128}, {"resnet50", 4}, {"mobilenet", 8}, {"lstm", 20}, {"dcgan", 64}};
}

inline json executed_task(const Executed& one, const std::string& slow, const json& fast,
                          std::string_view planner) {
  return {{"model", one.model},  {"batch", one.batch},
          {"sequence", nullptr}, {"threads", std::thread::hardware_concurrency()},
          {"fast", fast},        {"slow", slow},
          {"planner", planner}};
}

inline std::string emulated_spec(BytesPerSecond read, BytesPerSecond write, Seconds latency) {
  return fmt::format("emulated:4GiB,read={:.2f}GB/s,write={:.2f}GB/s,latency={:.0f}ns", read.value / 1e9,
                     write.value / 1e9, latency.count() * 1e9);
}

/// What slow memory does of what fast memory does when programs stream. The preset of Optane has rates of
/// kernels' ordinary stores instead, which real kernels add by themselves: 002 Table 8.1 and chapter 7.
struct SlowShare {
  double read, write;
};
inline SlowShare slow_share(const Machine& there) {
  if (there.name == "optane-sentinel") return {35.0 / 95, 13.0 / 80};
  const MachineTier &fast = there.tiers[0], &slow = there.tiers[1];
  return {slow.read.value / fast.read.value, slow.write.value / fast.write.value};
}

/// Returns the spec of a tier that is slower than this computer's memory by the preset's ratio of slow to
/// fast.
inline std::string emulated_as(const std::string& preset, const Machine& here) {
  const Machine there = machine_preset(preset).value();
  const SlowShare share = slow_share(there);
  return emulated_spec({here.tiers[0].read.value * share.read}, {here.tiers[0].write.value * share.write},
                       there.tiers[1].latency);
}

inline Machine this_computer(const Executed& one) {
  const json task = executed_task(one, "emulated:4GiB,read=4GB/s,write=2GB/s,latency=200ns", "100%", "");
  const Graph graph = graph_of(task);
  return prepare(workload_request(task, graph)).value().machine;
}

/// Measures the emulated tier and the kernels, so that every run uses the same figures.
inline void prepare_caches(const json& task) {
  const Graph graph = graph_of(task);
  const Workload workload = prepare(workload_request(task, graph)).value();
  profile_of(workload, budget_of(workload, "100%").value()).value();
}

/// Starts the run with all memory first, then the planners that have a plan.
inline std::vector<std::unique_ptr<Contender>> start_all(const std::string& program, const Executed& one,
                                                         const std::string& slow,
                                                         const std::vector<std::string>& planners) {
  std::vector<std::unique_ptr<Contender>> all;
  const auto start = [&](const std::string& name, const json& task) {
    try {
      all.push_back(std::make_unique<Contender>(
          name, std::vector<std::string>{program, "--contender", task.dump()}, std::vector<std::string>{}));
    } catch (const std::exception& error) {
      print_line(fmt::format("{} {} {}: left out: {}", one.model, one.batch, name, error.what()));
    }
  };
  start("fast-only", executed_task(one, slow, nullptr, ""));
  for (const std::string& planner : planners) start(planner, executed_task(one, slow, "20%", planner));
  return all;
}

/// Steps alternate, so that all contenders see the same disturbances; each step is compared with that of the
/// run with all memory in the same round.
inline json alternate(std::vector<std::unique_ptr<Contender>>& all, const Executed& one,
                      const std::string& preset, bool quick) {
  for (auto& contender : all) contender->warm_up(2);
  std::vector<std::vector<double>> exposed(all.size());
  for (int i = 0; i < (quick ? 3 : 11); ++i) {
    for (std::size_t who = 0; who < all.size(); ++who)
      exposed[who].push_back(all[who]->step().at("exposed_seconds").get<double>());
  }
  json rows = json::array();
  const std::vector<double>& fast = all.front()->seconds();
  for (std::size_t who = 1; who < all.size(); ++who) {
    const Contender& run = *all[who];
    std::vector<double> speeds;
    for (std::size_t i = 0; i < fast.size(); ++i) speeds.push_back(fast[i] / run.seconds()[i]);
    const auto fact = [&](const char* name) { return run.ready().at(name).get<double>(); };
    // Where time goes, of a step with all memory: kernels that are slower, and waiting.
    const double usual = median(fast), waits = median(exposed[who]);
    const double waiting = waits / usual, slower = (median(run.seconds()) - waits) / usual - 1;
    const double predicted_waiting = fact("predicted_exposed_seconds") / fact("fast_only_seconds");
    const double predicted_slower =
        (fact("predicted_seconds") - fact("predicted_exposed_seconds")) / fact("fast_only_seconds") - 1;
    rows.push_back({{"model", one.model},
                    {"batch", one.batch},
                    {"machine", preset},
                    {"planner", run.name()},
                    {"speed", median(speeds)},
                    {"spread", spread(speeds)},
                    {"predicted_speed", fact("fast_only_seconds") / fact("predicted_seconds")},
                    {"bound_speed", fact("fast_only_seconds") / fact("bound_seconds")},
                    {"median_seconds", median(run.seconds())},
                    {"fast_only_seconds", median(fast)},
                    {"waiting", waiting},
                    {"kernels_slower", slower},
                    {"predicted_waiting", predicted_waiting},
                    {"predicted_kernels_slower", predicted_slower},
                    {"graph_peak_bytes", fact("graph_peak_bytes")}});
    const json& row = rows.back();
    print_line(fmt::format("| {} {} | {} | {} | {:.0f} | {} | {} to {} | {} | {} | {}, {} | {}, {} |",
                           one.model, one.batch, preset, run.name(), fact("graph_peak_bytes") / 1e6,
                           percent_of(row["speed"]), percent(quantile(speeds, 0)),
                           percent(quantile(speeds, 1)), percent_of(row["predicted_speed"]),
                           percent_of(row["bound_speed"]), percent(slower), percent(predicted_slower),
                           percent(waiting), percent(predicted_waiting)));
  }
  return rows;
}

inline json executed(const std::string& program, const std::string& preset, bool quick,
                     const std::vector<Executed>& models, const std::vector<std::string>& planners) {
  const ScratchFolder scratch("build/bench/sentinel-" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1);
  const Machine here = this_computer(models.front());
  const std::string slow = emulated_as(preset, here);
  print_head(fmt::format("Executed at 20%; {} as {} beside {:.1f} GB/s read, {:.1f} written", preset, slow,
                         here.tiers[0].read.value / 1e9, here.tiers[0].write.value / 1e9),
             "| model, batch | machine | planner | peak MB | share of fast-only | least to greatest | "
             "predicted | bound | kernels slower by, predicted | waiting, predicted |");
  json rows = json::array();
  for (const Executed& one : models) {
    prepare_caches(executed_task(one, slow, "100%", ""));
    auto all = start_all(program, one, slow, planners);
    for (json& row : alternate(all, one, preset, quick)) rows.push_back(row);
  }
  return rows;
}

inline json executed(const std::string& program, const std::string& preset, bool quick) {
  return executed(program, preset, quick, executed_models(quick),
                  {"sentinel", "sentinel+", "prefetch", "active-list", "first-touch"});
}

/// AutoTM's programs beside Sentinel.
inline json executed_autotm(const std::string& program, bool quick) {
  const std::vector<Executed> models =
      quick ? executed_models(quick)
            : std::vector<Executed>{{"resnet32", 128}, {"resnet50", 4}, {"mobilenet", 8}};
  return executed(program, kOptane, quick, models,
                  {"sentinel", "sentinel+", "autotm-static+iterations=500", kAutoTmSync});
}

}  // namespace terrace::bench

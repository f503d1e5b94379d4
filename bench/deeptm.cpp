// SPDX-License-Identifier: Apache-2.0
// Claim: a learned plan keeps as much speed with a fifth of its memory fast as DeepTM's paper prints for each
// network.
//
//   bench/run deeptm [--quick] [--only PART] [--network NAME] [--batch N] [--planner NAME] [--seeds N]
//
//   speed      004 Fig. 14 and 15: share of the speed with all in DRAM, planners side by side, and planning
//   memory     004 Fig. 17: the least DRAM for 90% of full speed
//   cost       004 Fig. 16: what beta takes of DRAM, and what it costs
//   ablation   004 Fig. 4 and section VI-B: heat by one property, fixed weights, without learning
//   seeds      the share of full speed over several seeds, with all that training does and as published
//   changes    other budgets and another batch: an agent continued, a new one, and the exact program
//   bandwidth  004 Fig. 18: what transfers use of their links, with and without the aggregator
//   executed   the aggregator in executed steps, on a disk and on emulated memory; wants a quiet computer
//
// The paper's machine (`optane-deeptm`) is simulated with kernels estimated from its description, so that
// only seconds depend on this computer. Every plan is verified. `ratio` is the geometric mean over networks
// of the synchronous plan's share of speed over the paper's.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <functional>

#include "base/memory_limit.hpp"
#include "deeptm_executed.hpp"
#include "options.hpp"
#include "planners/deeptm/training.hpp"
#include "report.hpp"
#include "sentinel_cases.hpp"

namespace terrace::bench {
namespace {

using nlohmann::json;

struct PaperNetwork {
  const char* name;
  double speed;  ///< 004 section VI-B: of infinite DRAM, synchronous, batch 512
  double least;  ///< 004 Fig. 17's text: share of DRAM for 90% of full speed, batch 512
};
constexpr PaperNetwork kNetworks[] = {{"vgg19", 0.902, 0.244},
                                      {"resnet152", 0.949, 0.152},
                                      {"inception4", 0.861, 0.248},
                                      {"mobilenet", 0.832, 0.283},
                                      {"alexnet", 0.863, 0.167}};
constexpr double kShare = 0.2;  ///< fast to slow 1:4

struct Request : PaperRequest {
  std::string planner;
  std::vector<std::int64_t> batches;  ///< none means the paper's
  std::uint64_t seeds = 5;
};

struct Timed {
  std::optional<double> speed;
  double seconds = 0;  ///< of a processor
  std::string remark;
  Bytes fast;    ///< that the plan takes
  Bytes memory;  ///< that planning took
};

Timed timed(const Simulated& on, const std::string& planner, double share, LearnedAgents* agents = nullptr,
            std::uint64_t seed = 0) {
  PlanRequest request = on.request(share);
  request.agents = agents;
  request.seed = seed;
  const Bytes before = restart_peak_resident();
  const std::clock_t start = std::clock();
  const auto plan = make_plan(planner, request);
  Timed made{{}, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, {}, {}, {}};
  made.memory = peak_resident() - std::min(before, peak_resident());
  if (!plan) return made;
  if (!violations(on.graph(), on.machine(), *plan).empty())
    throw std::runtime_error("the verifier rejects the plan of " + planner);
  made.speed = on.fast_only() / plan->prediction.step;
  made.remark = plan->remark;
  made.fast = plan->budget[0];
  return made;
}

/// How long a decision takes, with all that is asked of the environment for it, and how many a step has.
json decisions(const Simulated& on) {
  const PlanRequest request = on.request(kShare);
  deeptm::EnvironmentRules rules;
  rules.copies = deeptm::Copies::synchronous;
  const deeptm::Environment environment(request, rules);
  const deeptm::Agent agent(deeptm::Rollout::observed(environment.tiers()), environment.tiers(), {}, 1);
  deeptm::Rollout rollout(environment, request.budget[0]);
  std::vector<float> state;
  std::size_t asked = 0;
  const auto start = std::chrono::steady_clock::now();
  for (; !rollout.done(); ++asked) {
    rollout.observe(state);
    rollout.act({agent.best(state)});
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {{"decisions", asked},
          {"microseconds", 1e6 * seconds / static_cast<double>(std::max<std::size_t>(asked, 1))}};
}

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}%", 100 * *value) : "no plan";
}

/// Planners that are compared, the fast ones of AutoTM with a fixed count of work.
constexpr const char* kPlanners[] = {"deeptm+copies=sync",
                                     "deeptm",
                                     "heat+copies=sync",
                                     "autotm-sync+iterations=2000",
                                     "autotm-async+iterations=2000",
                                     "sentinel",
                                     "sentinel+",
                                     "first-touch",
                                     "best"};

json speed_row(const PaperNetwork& network, std::int64_t batch, const Request& request) {
  const Simulated on(zoo_model(network.name, batch), "optane-deeptm");
  json row{{"model", network.name},
           {"batch", batch},
           {"paper", network.speed},
           {"bound", on.bound_speed(kShare)},
           {"kernels", on.graph().kernels.size()},
           {"tensors", on.graph().tensors.size()},
           {"decision", decisions(on)}};
  print_line(fmt::format("  {} {}: {} decisions, {:.2f} us each", network.name, batch,
                         row["decision"]["decisions"].get<std::size_t>(),
                         row["decision"]["microseconds"].get<double>()));
  std::string line = fmt::format("| {} {} | {:.1f}% |", network.name, batch, 100 * network.speed);
  const std::vector<std::string> planners =
      request.planner.empty() ? std::vector<std::string>(std::begin(kPlanners), std::end(kPlanners))
                              : std::vector{request.planner};
  for (const std::string& planner : planners) {
    if (request.quick && planner == "best") continue;
    const Timed made = timed(on, planner, kShare);
    if (made.speed && *made.speed > row["bound"].get<double>() * (1 + 1e-9) && planner != "best")
      throw std::runtime_error("a plan is faster than its bound");
    row["planners"][planner] = {{"speed", made.speed ? json(*made.speed) : json(nullptr)},
                                {"plan_seconds", made.seconds},
                                {"memory_bytes", made.memory.count},
                                {"remark", made.remark}};
    line += fmt::format(" {} |", percent(made.speed));
    if (planner.starts_with("deeptm") || planner.starts_with("autotm") || planner == "best")
      print_line(fmt::format("  {} {}: {}, {:.1f} s, {:.0f} MB", network.name, planner, made.remark,
                             made.seconds, static_cast<double>(made.memory.count) / 1e6));
  }
  print_line(line + fmt::format(" {:.1f}% |", 100 * row["bound"].get<double>()));
  return row;
}

/// The least share of the peak with which the planner keeps 90% of full speed, to two hundredths. One agent
/// is handed on from each share to the next.
std::optional<double> least_share(const Simulated& on, const std::string& planner) {
  LearnedAgents agents;
  const auto is_enough = [&](double share) {
    return timed(on, planner, share, &agents).speed.value_or(0) >= 0.9;
  };
  double low = 0.02, high = 1;
  while (high - low > 0.02) (is_enough((low + high) / 2) ? high : low) = (low + high) / 2;
  return high < 1 ? std::optional(high) : std::nullopt;
}

json memory_row(const PaperNetwork& network, std::int64_t batch, const Request& request) {
  const Simulated on(zoo_model(network.name, batch), "optane-deeptm");
  json row{{"model", network.name}, {"batch", batch}, {"paper_least", network.least}};
  std::string line = fmt::format("| {} {} | {:.1f}% |", network.name, batch, 100 * network.least);
  for (const std::string planner : {"deeptm+copies=sync+episodes=60+refine=0", "deeptm+episodes=60+refine=0",
                                    "autotm-sync+iterations=500", "sentinel", "sentinel+"}) {
    if (!request.planner.empty() && request.planner != planner) continue;
    const auto least = least_share(on, planner);
    row["least"][planner] = least ? json(*least) : json(nullptr);
    line += fmt::format(" {} |", percent(least));
  }
  print_line(line);
  return row;
}

/// What beta makes of as much DRAM as it likes, by the prices of 004, beside the usual fifth of the peak.
json cost_row(const PaperNetwork& network, std::int64_t batch) {
  constexpr double kDram = 23.81, kOptane = 7.85;
  const Simulated on(zoo_model(network.name, batch), "optane-deeptm");
  const auto price = [&](double share) { return kDram * share + kOptane * (1 - share); };
  const Timed usual = timed(on, "deeptm+copies=sync+episodes=60+refine=0", kShare);
  json row{{"model", network.name}, {"batch", batch}};
  std::string line =
      fmt::format("| {} {} | {} for {:.0f}% |", network.name, batch, percent(usual.speed), 100 * kShare);
  for (const char* beta : {"0.25", "0.5", "0.75"}) {
    const Timed made = timed(on, std::string("deeptm+copies=sync+episodes=60+refine=0+beta=") + beta, 1);
    if (!made.speed || !usual.speed) continue;
    const double share = on.share_of(made.fast);
    row["beta"][beta] = {{"speed", *made.speed}, {"share", share}};
    line += fmt::format(" {} for {:.0f}%: speed {:+.0f}%, price {:+.0f}% |", percent(made.speed), 100 * share,
                        100 * (*made.speed / *usual.speed - 1), 100 * (price(share) / price(kShare) - 1));
  }
  print_line(line);
  return row;
}

json ablation_row(const PaperNetwork& network, std::int64_t batch) {
  const Simulated on(zoo_model(network.name, batch), "optane-deeptm");
  json row{{"model", network.name}, {"batch", batch}};
  std::string line = fmt::format("| {} {} |", network.name, batch);
  for (const std::string planner :
       {"deeptm+copies=sync", "deeptm+copies=sync+reward=share", "deeptm+copies=sync+weights=fixed",
        "deeptm+copies=sync+aggregate=off", "deeptm+copies=sync+refine=0",
        "deeptm+copies=sync+episodes=3+refine=0", "heat+copies=sync", "heat+copies=sync+weights=fixed",
        "heat+copies=sync+hotter=long", "heat+copies=sync+by=size", "heat+copies=sync+by=lifetime",
        "heat+copies=sync+by=recency", "heat+copies=sync+by=frequency"}) {
    const Timed made = timed(on, planner, kShare);
    row["planners"][planner] = made.speed ? json(*made.speed) : json(nullptr);
    line += fmt::format(" {} |", percent(made.speed));
  }
  print_line(line);
  return row;
}

/// The least, middle and greatest share of full speed over seeds.
json seeds_row(const PaperNetwork& network, std::int64_t batch, const Request& request) {
  const Simulated on(zoo_model(network.name, batch), "optane-deeptm");
  json row{{"model", network.name}, {"batch", batch}};
  std::string line = fmt::format("| {} {} |", network.name, batch);
  for (const std::string planner : {"deeptm+copies=sync+refine=0", "deeptm+copies=sync", "deeptm+refine=0",
                                    "deeptm", "deeptm+copies=sync+episodes=3+refine=2000"}) {
    if (!request.planner.empty() && request.planner != planner) continue;
    std::vector<double> speeds, seconds;
    for (std::uint64_t seed = 0; seed < request.seeds; ++seed) {
      const Timed made = timed(on, planner, kShare, nullptr, seed);
      speeds.push_back(made.speed.value_or(0));
      seconds.push_back(made.seconds);
    }
    row["planners"][planner] = {{"speeds", speeds}, {"seconds", seconds}};
    line += fmt::format(" {} ({} to {}), {:.1f} s |", percent(median(speeds)), percent(quantile(speeds, 0)),
                        percent(quantile(speeds, 1)), median(seconds));
  }
  print_line(line);
  return row;
}

/// What a request costs that differs a little from one that an agent was trained for: by a continued agent
/// with few episodes, by a new one, and by the exact program.
json changes_row(const PaperNetwork& network, std::int64_t batch) {
  const Simulated trained(zoo_model(network.name, batch), "optane-deeptm");
  const Simulated larger(zoo_model(network.name, 2 * batch), "optane-deeptm");
  LearnedAgents agents;
  timed(trained, "deeptm+copies=sync", kShare, &agents);
  json row = json::array();
  const auto compare = [&](const Simulated& on, const char* what, double share) {
    LearnedAgents known = agents;
    // Agents are kept by graph; that of another batch has as many decisions and is tried here as if it were.
    for (LearnedAgent& agent : known) agent.graph = fingerprint(on.graph());
    std::string line = fmt::format("| {} {} | {}, {:.0f}% |", network.name, batch, what, 100 * share);
    json one{{"model", network.name}, {"batch", batch}, {"change", what}, {"share", share}};
    for (const auto& [planner, from] : {std::pair{"deeptm+copies=sync+episodes=5+refine=25", &known},
                                        std::pair<const char*, LearnedAgents*>{"deeptm+copies=sync", nullptr},
                                        {"autotm-sync+iterations=2000", nullptr}}) {
      const Timed made = timed(on, planner, share, from);
      one["planners"][planner] = {{"speed", made.speed.value_or(0)}, {"seconds", made.seconds}};
      line += fmt::format(" {}, {:.2f} s |", percent(made.speed), made.seconds);
    }
    print_line(line);
    row.push_back(std::move(one));
  };
  for (const double share : {0.15, 0.25, 0.4}) compare(trained, "budget", share);
  compare(larger, "twice the batch", kShare);
  return row;
}

/// Transfers of a plan and what they use of their links' full rates while they run alone.
json bandwidth_of(const Simulated& on, const Plan& plan) {
  std::size_t transfers = 0;
  Bytes bytes;
  Seconds full{0}, taken{0};
  for (const Instruction& instruction : plan.instructions) {
    const auto* copy = std::get_if<Copy>(&instruction);
    if (copy == nullptr) continue;
    Bytes carried;
    for (const TensorId tensor : copy->tensors) carried += on.graph()[tensor].bytes;
    const Link& link = *on.machine().link(copy->from, copy->to);
    ++transfers;
    bytes += carried;
    full += carried / link.rates.back().rate;
    taken += link.time(carried);
  }
  return {{"transfers", transfers}, {"bytes", bytes.count}, {"utilization", full / taken}};
}

json bandwidth_row(const PaperNetwork& network, std::int64_t batch) {
  const Simulated on(zoo_model(network.name, batch), "optane-deeptm");
  json row{{"model", network.name}, {"batch", batch}};
  for (const std::string planner : {"deeptm+copies=sync", "heat+copies=sync", "prefetch", "sentinel+"}) {
    std::string line = fmt::format("| {} {} | {} |", network.name, batch, planner);
    for (const std::string aggregate : {"off", "on"}) {
      const auto plan = on.plan(planner + "+aggregate=" + aggregate, kShare);
      if (!plan) continue;
      json used = bandwidth_of(on, *plan);
      used["speed"] = on.fast_only() / plan->prediction.step;
      line += fmt::format(
          " {} | {:.2f} MB | {:.1f}% | {:.2f}% |", used["transfers"].get<std::size_t>(),
          used["bytes"].get<double>() / 1e6 / std::max<double>(1, used["transfers"].get<double>()),
          100 * used["utilization"].get<double>(), 100 * used["speed"].get<double>());
      row["planners"][planner][aggregate] = std::move(used);
    }
    print_line(line);
  }
  return row;
}

void run(const Request& request) {
  json details = json::object();
  std::vector<double> ratios;
  const auto each = [&](const char* part, auto&& row_of) {
    if (!request.asks_for(part)) return;
    for (const PaperNetwork& network : kNetworks) {
      if (!request.asks_for_network(network.name)) continue;
      if (request.quick && std::string_view(network.name) != "alexnet") continue;
      for (const std::int64_t batch : request.batches) details[part].push_back(row_of(network, batch));
    }
  };
  print_head(
      "Share of the speed with all in DRAM, 1:4",
      "| network | paper (sync, 512) | deeptm sync | deeptm | heat sync | autotm-sync | autotm-async | "
      "sentinel | sentinel+ | first-touch | best | bound |");
  each("speed", [&](const PaperNetwork& network, std::int64_t batch) {
    json row = speed_row(network, batch, request);
    const json speed = row["planners"].value("/deeptm+copies=sync/speed"_json_pointer, json());
    ratios.push_back(speed.is_null() ? NAN : speed.get<double>() / network.speed);
    return row;
  });
  print_head(
      "Ablations, synchronous",
      "| network | deeptm | reward=share | weights=fixed | aggregate=off | not refined | neither learned nor "
      "refined | heat | heat, "
      "fixed weights | heat, long-lived "
      "hotter | by size | by lifetime | by recency | by frequency |");
  each("ablation", ablation_row);
  if (request.only == "seeds") {
    print_head(
        fmt::format("Shares of full speed over {} seeds: middle (least to greatest), processor seconds",
                    request.seeds),
        "| network | learned, sync | refined, sync | learned | refined | not learned, refined, sync |");
    each("seeds",
         [&](const PaperNetwork& network, std::int64_t batch) { return seeds_row(network, batch, request); });
  }
  if (request.only == "changes") {
    print_head("After an agent was trained for a fifth: share of full speed, processor seconds",
               "| network | change | continued, 30 episodes | new agent | exact program |");
    each("changes", changes_row);
  }
  print_head("Least DRAM for 90% of full speed, as a share of the peak",
             "| network | paper (512) | deeptm sync | deeptm | autotm-sync | sentinel | sentinel+ |");
  each("memory",
       [&](const PaperNetwork& network, std::int64_t batch) { return memory_row(network, batch, request); });
  print_head("What beta takes of DRAM, synchronous", "| network | a fifth | beta 0.25 | 0.5 | 0.75 |");
  each("cost", cost_row);
  print_head(
      "What transfers use of their links, with all tensors by themselves and aggregated",
      "| network | planner | transfers | each | of the full rate | speed | aggregated: transfers | each | "
      "of the full rate | speed |");
  each("bandwidth", bandwidth_row);
  if (request.only == "executed") details["executed"] = aggregator_executed(request.quick);
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  print_result("geometric mean of the synchronous plan's share of full speed over the paper's", "at least 1",
               ratios.empty() ? NAN : std::exp(sum / static_cast<double>(ratios.size())),
               ratios.empty() ? json::array() : spread(ratios), std::move(details));
}

Request request_of(int argc, char** argv) {
  Request request;
  read_options(argc, argv, request,
               {{"--planner NAME", [&](const std::string& name) { request.planner = name; }},
                {"--seeds N", [&](const std::string& seeds) { request.seeds = std::stoull(seeds); }},
                {"--batch N", [&](const std::string& batch) { request.batches = {std::stoll(batch)}; }}});
  if (request.batches.empty()) request.batches = {128, 512};
  if (request.quick) request.batches.resize(1);
  return request;
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) {
  using namespace terrace::bench;
  return guarded(argv, [&] { run(request_of(argc, argv)); });
}

// SPDX-License-Identifier: Apache-2.0
// Claim: a learned plan keeps as much speed with a fifth of its memory fast as DeepTM's paper prints for each
// network.
//
//   bench/run deeptm [--quick] [--only speed|memory|ablation|bandwidth] [--network NAME] [--batch N]
//
//   speed      004 Fig. 14 and 15: share of the speed with all in DRAM, planners side by side, and planning
//   memory     004 Fig. 16 and 17: the least DRAM for 90% of full speed, and what beta chooses
//   ablation   004 Fig. 4 and section VI-B: heat by one property, fixed weights, without learning
//   bandwidth  004 Fig. 18: what transfers use of their links, with and without the aggregator
//
// The paper's machine (`optane-deeptm`) is simulated with kernels estimated from its description, so that
// only seconds depend on this computer. Every plan is verified. `ratio` is the geometric mean over networks
// of the synchronous plan's share of speed over the paper's.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <map>

#include "options.hpp"
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

struct Request {
  bool quick = false;
  std::string only, network;
  std::vector<std::int64_t> batches{128, 512};
};

struct Timed {
  std::optional<double> speed;
  double seconds = 0;
  std::string remark;
  Bytes moved;
};

Timed timed(const Simulated& on, const std::string& planner, double share, LearnedAgents* agents = nullptr) {
  PlanRequest request = on.request(share);
  request.agents = agents;
  const auto start = std::chrono::steady_clock::now();
  const auto plan = make_plan(planner, request);
  Timed made{{}, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), {}, {}};
  if (!plan) return made;
  if (!violations(on.graph(), on.machine(), *plan).empty())
    throw std::runtime_error("the verifier rejects the plan of " + planner);
  made.speed = on.fast_only() / plan->prediction.step;
  made.remark = plan->remark;
  for (const Traffic& traffic : plan->prediction.moved) made.moved += traffic.bytes;
  return made;
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

json speed_row(const PaperNetwork& network, std::int64_t batch, bool quick) {
  const Simulated on(zoo_model(network.name, batch), "optane-deeptm");
  json row{{"model", network.name},
           {"batch", batch},
           {"paper", network.speed},
           {"bound", on.bound_speed(kShare)},
           {"kernels", on.graph().kernels.size()},
           {"tensors", on.graph().tensors.size()}};
  std::string line = fmt::format("| {} {} | {:.1f}% |", network.name, batch, 100 * network.speed);
  for (const std::string planner : kPlanners) {
    if (quick && planner == "best") continue;
    const Timed made = timed(on, planner, kShare);
    if (made.speed && *made.speed > row["bound"].get<double>() * (1 + 1e-9) && planner != "best")
      throw std::runtime_error("a plan is faster than its bound");
    row["planners"][planner] = {{"speed", made.speed ? json(*made.speed) : json(nullptr)},
                                {"plan_seconds", made.seconds},
                                {"remark", made.remark}};
    line += fmt::format(" {} |", percent(made.speed));
    if (planner.starts_with("deeptm") || planner.starts_with("autotm") || planner == "best")
      print_line(fmt::format("  {} {}: {}, {:.1f} s", network.name, planner, made.remark, made.seconds));
  }
  print_line(line + fmt::format(" {:.1f}% |", 100 * row["bound"].get<double>()));
  return row;
}

/// Shares of the peak, one agent handed on from each to the next.
json memory_row(const PaperNetwork& network, std::int64_t batch, bool quick) {
  const Simulated on(zoo_model(network.name, batch), "optane-deeptm");
  const std::vector<double> shares =
      quick ? std::vector<double>{0.2, 0.4} : std::vector<double>{0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6};
  json row{{"model", network.name}, {"batch", batch}, {"paper_least", network.least}};
  for (const std::string planner : {"deeptm", "deeptm+copies=sync", "sentinel+", "best"}) {
    if (quick && planner == "best") continue;
    LearnedAgents agents;
    std::optional<double> least;
    std::map<double, std::pair<double, double>> chosen;  // by beta: reward and share
    for (const double share : shares) {
      const Timed made = timed(on, planner, share, &agents);
      if (!made.speed) continue;
      row["planners"][planner][fmt::format("{:.2f}", share)] = *made.speed;
      if (!least && *made.speed >= 0.9) least = share;
      for (const double beta : {0.25, 0.5, 0.75}) {
        const double reward = beta * *made.speed + (1 - beta) * (1 - share);
        auto& best = chosen[beta];
        if (reward > best.first) best = {reward, share};
      }
    }
    row["least"][planner] = least ? json(*least) : json(nullptr);
    for (const auto& [beta, best] : chosen) row["beta"][planner][fmt::format("{:.2f}", beta)] = best.second;
    print_line(fmt::format("| {} {} | {} | {} | {:.1f}% |", network.name, batch, planner,
                           least ? fmt::format("{:.0f}%", 100 * *least) : "more", 100 * network.least));
  }
  return row;
}

json ablation_row(const PaperNetwork& network, std::int64_t batch) {
  const Simulated on(zoo_model(network.name, batch), "optane-deeptm");
  json row{{"model", network.name}, {"batch", batch}};
  std::string line = fmt::format("| {} {} |", network.name, batch);
  for (const std::string planner :
       {"deeptm+copies=sync", "deeptm+copies=sync+reward=time", "deeptm+copies=sync+weights=fixed",
        "heat+copies=sync", "heat+copies=sync+weights=fixed", "heat+copies=sync+hotter=long",
        "heat+copies=sync+by=size", "heat+copies=sync+by=lifetime", "heat+copies=sync+by=recency",
        "heat+copies=sync+by=frequency"}) {
    const Timed made = timed(on, planner, kShare);
    row["planners"][planner] = made.speed ? json(*made.speed) : json(nullptr);
    line += fmt::format(" {} |", percent(made.speed));
  }
  print_line(line);
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
    if (!request.only.empty() && request.only != part) return;
    for (const PaperNetwork& network : kNetworks) {
      if (!request.network.empty() && request.network != network.name) continue;
      if (request.quick && std::string_view(network.name) != "alexnet") continue;
      for (const std::int64_t batch : request.batches) details[part].push_back(row_of(network, batch));
    }
  };
  print_head(
      "Share of the speed with all in DRAM, 1:4",
      "| network | paper (sync, 512) | deeptm sync | deeptm | heat sync | autotm-sync | autotm-async | "
      "sentinel | sentinel+ | first-touch | best | bound |");
  each("speed", [&](const PaperNetwork& network, std::int64_t batch) {
    json row = speed_row(network, batch, request.quick);
    const json& speed = row["planners"]["deeptm+copies=sync"]["speed"];
    ratios.push_back(speed.is_null() ? NAN : speed.get<double>() / network.speed);
    return row;
  });
  print_head(
      "Ablations, synchronous",
      "| network | deeptm | reward=time | weights=fixed | heat | heat, fixed weights | heat, long-lived "
      "hotter | by size | by lifetime | by recency | by frequency |");
  each("ablation", ablation_row);
  print_head("Least DRAM for 90% of full speed", "| network | planner | least share | paper (512) |");
  each("memory", [&](const PaperNetwork& network, std::int64_t batch) {
    return memory_row(network, batch, request.quick);
  });
  print_head(
      "What transfers use of their links, with all tensors by themselves and aggregated",
      "| network | planner | transfers | each | of the full rate | speed | aggregated: transfers | each | "
      "of the full rate | speed |");
  each("bandwidth", bandwidth_row);
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  print_result("geometric mean of the synchronous plan's share of full speed over the paper's", "at least 1",
               ratios.empty() ? NAN : std::exp(sum / static_cast<double>(ratios.size())),
               ratios.empty() ? json::array() : spread(ratios), std::move(details));
}

Request request_of(int argc, char** argv) {
  Request request;
  read_options(argc, argv,
               {{"--quick",
                 [&] {
                   request.quick = true;
                   request.batches = {128};
                 }}},
               {{"--only PART", [&](const std::string& part) { request.only = part; }},
                {"--network NAME", [&](const std::string& name) { request.network = name; }},
                {"--batch N", [&](const std::string& batch) { request.batches = {std::stoll(batch)}; }}});
  return request;
}

}  // namespace
}  // namespace terrace::bench

int main(int argc, char** argv) {
  using namespace terrace::bench;
  return guarded(argv, [&] { run(request_of(argc, argv)); });
}

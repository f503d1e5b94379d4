// SPDX-License-Identifier: Apache-2.0
// Measures how much fast memory Sentinel needs and what planning costs: 000 Fig. 12, Fig. 13, Table 3, and
// graphs of 10,000 kernels.
#pragma once

#include <ctime>

#include "sentinel_simulated.hpp"
#include "train/plan_trial.hpp"

namespace terrace::bench {

/// 000 Fig. 12 and 002 Fig. 4.10.
inline json figure12(bool quick) {
  json rows = json::array();
  const std::vector<double> shares =
      quick ? std::vector<double>{0.2, 0.6} : std::vector<double>{0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  std::string columns = "| model, batch | machine | |";
  for (const double share : shares) columns += fmt::format(" {:.0f}% |", 100 * share);
  const auto measure = [&](const PaperCase& one, const std::string& machine) {
    const Simulated on(one.build(one.batch), machine);
    std::vector<double> bounds;
    for (const double share : shares) bounds.push_back(on.bound_speed(share));
    for (const std::string who : {"bound", "sentinel+", "prefetch"}) {
      json row{{"model", one.name}, {"batch", one.batch}, {"machine", machine}, {"who", who}};
      std::string line = fmt::format("| {} {} | {} | {} |", one.name, one.batch, machine, who);
      for (std::size_t i = 0; i < shares.size(); ++i) {
        const double share = shares[i];
        std::optional<double> speed = bounds[i];
        if (who != "bound") speed = within(bounds[i], on.speed(who, share));
        row["speed"].push_back({share, number(speed)});
        line += " " + percent(speed) + " |";
      }
      print_line(line);
      rows.push_back(row);
    }
  };
  print_head("Share of fast-only speed by share of fast memory", columns);
  for (const PaperCase& one : cases_of_000()) {
    if (!quick || one.name == "resnet32") measure(one, kNuma);
  }
  for (const PaperCase& one : cases_of_002()) {
    if (!quick) measure(one, kOptane);
  }
  return rows;
}

/// Returns the least share of the peak, in hundredths, with which the planner is as fast as wanted. It is
/// found by bisection, which assumes that more memory is never slower.
inline std::optional<int> least_hundredths(const Simulated& on, double wanted) {
  const auto enough = [&](int hundredths) {
    return on.speed("sentinel+", hundredths / 100.0).value_or(0) >= wanted;
  };
  int little = 0, much = 110;
  if (!enough(much)) return {};
  while (much - little > 1) {
    const int middle = (little + much) / 2;
    (enough(middle) ? much : little) = middle;
  }
  return much;
}

/// 000 Fig. 13.
inline json figure13(bool quick) {
  json rows = json::array();
  for (const char* machine : {kNuma, kOptane}) {
    print_head(fmt::format("Least fast memory of ResNets for CIFAR, batch 128, {}, MB", machine),
               "| model | peak | any plan | Sentinel's own (4.4.5) | 90% of fast-only | 99% of fast-only |");
    for (const std::int64_t blocks : quick ? std::vector<int>{3} : std::vector<int>{3, 5, 7, 9, 18}) {
      const Simulated on(cifar_resnet(128, blocks), machine);
      const Bytes own = sentinel::examine(on.request(1)).value().least;
      json row{{"model", on.graph().name},
               {"machine", machine},
               {"peak_bytes", on.peak().count},
               {"least_budget_bytes", on.least().count},
               {"sentinel_least_bytes", own.count}};
      std::string line = fmt::format("| {} | {} | {} | {} |", on.graph().name, megabytes(on.peak()),
                                     megabytes(on.least()), megabytes(own));
      for (const double wanted : {0.9, 0.99}) {
        const auto hundredths = least_hundredths(on, wanted);
        row["hundredths_of_peak"].push_back({wanted, hundredths ? json(*hundredths) : json(nullptr)});
        line += hundredths ? fmt::format(" {} ({}%) |", megabytes(on.peak() * *hundredths / 100), *hundredths)
                           : " never |";
      }
      print_line(line);
      rows.push_back(row);
    }
  }
  return rows;
}

/// Returns the trial steps that training with this planner would spend if steps took the predicted time.
inline std::uint32_t trial_steps(const Simulated& on, const std::string& planner) {
  const PlanRequest request = on.request(kUsualShare);
  const Plan made = make_plan(planner, request).value();
  const VerifiedPlan predicted = verify(on.graph(), on.machine(), made).value();
  PlanTrial trial({on.graph(), on.machine(), request.profile, request.budget, planner, predicted});
  while (!trial.done()) trial.observe(trial.plan()->prediction.step);
  return trial.steps();
}

/// 000 Table 3 and 002 Table 4.3. `steps` counts as the papers do: one for the profile, two for each interval
/// that begins too early. Beside it are the steps that our trial spends after profiling, with the papers'
/// rules and with the extended planner.
inline json table3(bool quick) {
  json rows = json::array();
  print_head(
      "Steps for profiling and trial at 20%",
      "| model, batch | machine | intervals | case 1 | case 2 | case 3 | steps | paper's | our trial, as "
      "published | our trial |");
  const auto count = [&](const PaperCase& one, const std::string& machine) {
    const Simulated on(one.build(one.batch), machine);
    PlanRequest request = on.request(kUsualShare);
    request.options = {{"end", "wait"}, {"in_place", "off"}, {"intervals", "equal"}};
    const auto found = sentinel::examine(request).value();
    std::vector<std::uint32_t> late;
    for (std::uint32_t i = 0; i < found.cases.size(); ++i) {
      if (found.cases[i] == sentinel::Case::no_time) late.push_back(i);
    }
    const std::uint32_t steps = 1 + sentinel::Trial(late).steps_left();
    const json cases = count_cases(found);
    const std::uint32_t as_published = trial_steps(on, kAsPublished), ours = trial_steps(on, "sentinel+");
    rows.push_back({{"model", one.name},
                    {"batch", one.batch},
                    {"machine", machine},
                    {"intervals", found.cuts.size()},
                    {"cases", cases},
                    {"steps", steps},
                    {"paper_steps", one.steps},
                    {"trial_steps_as_published", as_published},
                    {"trial_steps", ours}});
    print_line(fmt::format("| {} {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |", one.name, one.batch,
                           machine, found.cuts.size(), cases[0].get<int>(), cases[1].get<int>(),
                           cases[2].get<int>(), steps, one.steps, as_published, ours));
  };
  for (const PaperCase& one : cases_of_000()) {
    if (!quick || one.name == "resnet32") count(one, kNuma);
  }
  for (const PaperCase& one : cases_of_002()) {
    if (!quick) count(one, kOptane);
  }
  return rows;
}

/// Splits the batch into parts until there are this many kernels.
inline Graph of_many_kernels(const std::string& name, std::size_t kernels) {
  const std::size_t once = build_model(name, {.batch = 1}).value().kernels.size();
  const auto parts = static_cast<std::int64_t>((kernels + once - 1) / once);
  for (std::int64_t i = parts;; ++i) {
    Graph graph = build_model(name, {.batch = 8 * i, .micro_batches = i}).value();
    if (graph.kernels.size() >= kernels) return graph;
  }
}

inline json planning(bool quick) {
  constexpr std::size_t kKernels = 10'000;
  constexpr int kRounds = 3;
  json rows = json::array();
  print_head("Seconds to plan 10,000 kernels at 20%, or a tenth above the least; aim 1",
             "| model | machine | kernels | tensors | median s | least, greatest | of a processor | speed |");
  for (const std::string name : {"resnet200", "densenet264"}) {
    if (quick && name != "resnet200") continue;
    const Graph graph = of_many_kernels(name, kKernels);
    for (const char* machine : {kOptane, kNuma, "v100-pcie3"}) {
      const Simulated on(graph, machine);
      const double least = static_cast<double>(on.least().count) / static_cast<double>(on.peak().count);
      const PlanRequest request = on.request(std::max(kUsualShare, 1.1 * least));
      std::vector<double> seconds, processor;
      Seconds step{0};
      for (int i = 0; i < kRounds; ++i) {
        const auto start = std::chrono::steady_clock::now();
        const std::clock_t processor_start = std::clock();
        const Plan plan = make_plan("sentinel+", request).value();
        seconds.push_back(Seconds(std::chrono::steady_clock::now() - start).count());
        processor.push_back(static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC);
        step = plan.prediction.step;
      }
      rows.push_back({{"model", name},
                      {"machine", machine},
                      {"kernels", on.graph().kernels.size()},
                      {"median_seconds", median(seconds)},
                      {"spread", spread(seconds)},
                      {"processor_seconds", median(processor)}});
      print_line(fmt::format("| {} | {} | {} | {} | {:.2f} | {:.2f}, {:.2f} | {:.2f} | {} |", name, machine,
                             on.graph().kernels.size(), on.graph().tensors.size(), median(seconds),
                             quantile(seconds, 0), quantile(seconds, 1), median(processor),
                             percent(on.fast_only() / step)));
    }
  }
  return rows;
}

}  // namespace terrace::bench

// SPDX-License-Identifier: Apache-2.0
// 000 Fig. 11 carried out: the planner with everything beside those without one technique.
//
// What a technique is worth is less than what a step varies by from round to round. So each step is compared
// with that of the whole planner in the same round, in an order that changes from round to round, and what is
// lost is given with the interval that holds its median in 95 of 100 such runs.
#pragma once

#include <random>

#include "sentinel_executed.hpp"

namespace terrace::bench {

/// The ranks between which the median of as many values lies with at least 95%: a sign test's.
inline std::pair<std::size_t, std::size_t> median_ranks(std::size_t count) {
  // The binomial distribution of how many values are below the median, summed from its lower end.
  double probability = std::pow(0.5, static_cast<double>(count)), sum = 0;
  std::size_t rank = 0;
  for (; rank < count / 2; ++rank) {
    if (sum + probability > 0.025) break;
    sum += probability;
    probability *= static_cast<double>(count - rank) / static_cast<double>(rank + 1);
  }
  return {rank == 0 ? 0 : rank - 1, count - std::max<std::size_t>(rank, 1)};
}

inline json ablated(std::vector<std::unique_ptr<Contender>>& all, const Executed& one,
                    const std::string& preset, int rounds) {
  for (auto& contender : all) contender->warm_up(2);
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random(1);
  for (int i = 0; i < rounds; ++i) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t who : order) all[who]->step();
  }
  json rows = json::array();
  const auto [low, high] = median_ranks(static_cast<std::size_t>(rounds));
  const std::vector<double>&fast = all[0]->seconds(), &full = all[1]->seconds();
  for (std::size_t who = 1; who < all.size(); ++who) {
    const Contender& run = *all[who];
    const auto fact = [&](const Contender& of, const char* name) {
      return of.ready().at(name).get<double>();
    };
    std::vector<double> speeds, losses;
    for (std::size_t i = 0; i < fast.size(); ++i) {
      speeds.push_back(fast[i] / run.seconds()[i]);
      losses.push_back(1 - full[i] / run.seconds()[i]);
    }
    std::sort(losses.begin(), losses.end());
    const double predicted = 1 - fact(*all[1], "predicted_seconds") / fact(run, "predicted_seconds");
    rows.push_back({{"model", one.model},
                    {"batch", one.batch},
                    {"machine", preset},
                    {"planner", run.name()},
                    {"rounds", rounds},
                    {"speed", median(speeds)},
                    {"spread", spread(speeds)},
                    {"loss", median(losses)},
                    {"loss_interval", {losses[low], losses[high]}},
                    {"loss_spread", spread(losses)},
                    {"predicted_loss", predicted}});
    print_line(fmt::format("| {} {} | {} | {} | {} ({} to {}) | {} ({} to {}) | {} to {} | {} |", one.model,
                           one.batch, preset, run.name(), percent(median(speeds)),
                           percent(quantile(speeds, 0)), percent(quantile(speeds, 1)),
                           percent(median(losses)), percent(losses[low]), percent(losses[high]),
                           percent(losses.front()), percent(losses.back()), percent(predicted)));
  }
  return rows;
}

inline json executed11(const std::string& program, bool quick) {
  const ScratchFolder scratch("build/bench/sentinel-" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1);
  std::vector<std::string> planners{kAsPublished};
  for (const char* option : kAblations) planners.push_back(std::string(kAsPublished) + option);
  const std::vector<Executed> models =
      quick ? executed_models(quick) : std::vector<Executed>{{"resnet32", 128}, {"mobilenet", 8}};
  const Machine here = this_computer(models.front());
  print_head("Without one technique, executed at 20%",
             "| model, batch | machine | planner | share of fast-only (least to greatest) | lost without it "
             "(interval of the median) | least to greatest | predicted |");
  json rows = json::array();
  for (const char* machine : {kNuma, kOptane}) {
    const std::string slow = emulated_as(machine, here);
    std::fprintf(stderr, "%s as %s\n", machine, slow.c_str());
    for (const Executed& one : models) {
      if (machine == kOptane && one.model != "resnet32") continue;
      prepare_caches(executed_task(one, slow, "100%", ""));
      auto all = start_all(program, one, slow, planners);
      for (json& row : ablated(all, one, machine, quick ? 5 : 41)) rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace terrace::bench

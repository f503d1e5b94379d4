// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/advise_report.hpp"
#include "cli/checks.hpp"
#include "cli/command.hpp"
#include "cli/json_file.hpp"
#include "pipeline/fast_budget.hpp"
#include "record/outside_planner.hpp"
#include "terrace/pipeline.hpp"

namespace terrace::cli {
namespace {

constexpr double kMostSlowdown = 1000;  // percent

struct AdviseRequest : WorkloadOptions {
  std::vector<std::string> fast{"5%", "10%", "20%", "30%", "40%", "60%", "80%"};
  std::string planner;  ///< empty: the first of the list
  std::string slowdown = "5%";
  std::vector<std::string> prices;  ///< as NAME=NUMBER; those of the machine for others
  std::string json;
};

/// 0.05 of `5%`.
std::optional<double> slowdown_of(std::string_view text) {
  double percent = 0;
  if (!text.ends_with('%') || !reads_as(text.substr(0, text.size() - 1), percent)) return std::nullopt;
  if (!std::isfinite(percent) || percent < 0 || percent > kMostSlowdown) return std::nullopt;
  return percent / 100;
}

std::string wrong_slowdown(const std::string& text) {
  if (slowdown_of(text)) return {};
  return fmt::format("'{}' is no slowdown: give a percentage from 0 to {} such as 5%", text, kMostSlowdown);
}

struct TierPrice {
  std::string_view tier;
  double price = 0;
};

std::optional<TierPrice> price_of(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  TierPrice made{text.substr(0, equals)};
  if (!reads_as(text.substr(equals + 1), made.price)) return std::nullopt;
  if (!std::isfinite(made.price) || made.price < 0) return std::nullopt;
  return made;
}

std::string wrong_price(const std::string& text) {
  if (price_of(text)) return {};
  return fmt::format("'{}' is no price: give a tier and what a gigabyte of it costs, such as dram=16.61",
                     text);
}

/// The machine's own, and over them what was asked for; then no tier may be without.
std::vector<std::optional<double>> prices_of(const AdviseRequest& request, const Machine& machine) {
  std::vector<std::optional<double>> prices;
  std::vector<std::string_view> names;
  for (const MachineTier& tier : machine.tiers) {
    prices.push_back(tier.price);
    names.push_back(tier.name);
  }
  for (const std::string& text : request.prices) {
    const TierPrice given = *price_of(text);
    const auto found = std::find(names.begin(), names.end(), given.tier);
    if (found == names.end()) {
      throw BadInput(fmt::format("--price: machine {} has no tier '{}': its tiers are {}", machine.name,
                                 given.tier, enumerated(names)));
    }
    prices[static_cast<std::size_t>(found - names.begin())] = given.price;
  }
  for (std::size_t tier = 0; tier < prices.size() && !request.prices.empty(); ++tier) {
    if (!prices[tier]) {
      throw BadInput(fmt::format("--price: tier {} of machine {} has no price: add {}=NUMBER", names[tier],
                                 machine.name, names[tier]));
    }
  }
  return prices;
}

/// Budgets below the least or beyond the machine are left out: the curve begins and ends there.
void draw(Adviser& adviser, const AdviseRequest& request) {
  std::vector<Bytes> budgets;
  for (const std::string& text : request.fast)
    budgets.push_back(expect(parse_fast_budget(text, adviser.peak())));
  expect(adviser.plan_for_all(budgets));
}

void run_advise(const AdviseRequest& request) {
  std::unique_ptr<JsonFile> json;
  if (!request.json.empty()) json = std::make_unique<JsonFile>(request.json);
  if (is_outside_planner(request.planner)) {
    throw BadInput(
        fmt::format("advise plans dozens of times, with planners of terrace planners only: put {} beside "
                    "them with terrace compare",
                    request.planner));
  }
  ProgressLine line;
  line.show(fmt::format("building the graph of {}", request.model));
  const Graph graph = request.training_graph();
  const Workload workload = expect(prepare(request.on(graph, line)));
  const auto prices = prices_of(request, workload.machine);
  const auto budget = expect(budget_of(workload, {}));
  const Profile profile = expect(profile_of(workload, budget, shown_on(line)));
  const std::string planner =
      request.planner.empty() ? std::string(planners().front().name) : request.planner;
  const AdviceRequest asked{
      workload.graph(), workload.machine, profile, budget, planner, prices, [&](Bytes fast) {
        line.show(fmt::format("planning with {} for {}", planner, decimal_text(fast)));
      }};
  Adviser adviser(asked);
  draw(adviser, request);
  const AdviceReport report{expect(advice_of(adviser, asked, *slowdown_of(request.slowdown))), request};
  line.clear();
  if (json) {
    json->write(to_json(report));
  } else {
    print(report);
  }
}

}  // namespace

void add_advise(CLI::App& app) {
  auto request = std::make_shared<AdviseRequest>();
  CLI::App* command = app.add_subcommand(
      "advise", "Says how little fast memory will do, what more is worth, and what it all costs");
  add_model_options(*command, *request, ModelIs::argument);
  add_machine_options(*command, *request);
  command
      ->add_option("--slowdown", request->slowdown,
                   "By how much a step may take longer than with everything in fast memory (default: 5%)")
      ->type_name("PCT%")
      ->check(wrong_slowdown);
  command
      ->add_option("--price", request->prices,
                   "What a gigabyte of each tier costs, in any currency (default: as the machine says)")
      ->type_name("TIER=NUMBER,...")
      ->delimiter(',')
      ->check(wrong_price);
  command
      ->add_option(
          "--fast", request->fast,
          "Budgets of fast memory on the curve, amounts or percentages of the graph's peak (default: "
          "5%,10%,20%,30%,40%,60%,80%)")
      ->type_name("SIZE|PCT%,...")
      ->delimiter(',')
      ->check(wrong_fast_budget);
  add_planner_option(*command, request->planner);
  command->add_option("--json", request->json, "Write the result to this file instead of printing a table")
      ->type_name("FILE");
  command->callback([request] { run_advise(*request); });
}

}  // namespace terrace::cli

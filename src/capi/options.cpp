// SPDX-License-Identifier: Apache-2.0
#include "capi/options.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/json_reader.hpp"
#include "capi/guard.hpp"
#include "terrace/planner.hpp"
#include "terrace/workload.hpp"

namespace terrace::capi {
namespace {

constexpr double kMostSlowdown = 10;

std::vector<std::string> texts(const JsonValue& list) {
  std::vector<std::string> made;
  for (std::size_t i = 0; i < list.size(); ++i) made.push_back(list[i].text());
  return made;
}

std::vector<Bytes> amounts(const JsonValue& list) {
  std::vector<Bytes> made;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto bytes = list[i].integer(0, std::numeric_limits<std::int64_t>::max());
    made.push_back(Bytes{static_cast<std::uint64_t>(bytes)});
  }
  return made;
}

double not_negative(const JsonValue& value, double most) {
  const double number = value.number();
  if (!(number >= 0 && number <= most)) value.fail(fmt::format("a number from 0 to {} is wanted", most));
  return number;
}

void read_machine_value(Options& options, const JsonValue& value) {
  if (value.json().is_object()) {
    options.given = expect(machine_from_json(value.json().dump()));
  } else {
    options.machine = value.text();
  }
}

void read_of_plan(Options& options, const JsonObject& object) {
  if (const auto fast = object.find("fast")) options.fast = fast->text();
  if (const auto budget = object.find("budget")) options.budget = amounts(*budget);
  if (options.budget && !options.fast.empty()) object.fail("give `fast` or `budget`, not both");
  constexpr double kDay = 86400;
  if (const auto seconds = object.find("seconds")) options.seconds = not_negative(*seconds, kDay);
}

void read_of_advice(Options& options, const JsonObject& object) {
  options.budgets = {"5%", "10%", "20%", "30%", "40%", "60%", "80%"};
  if (const auto fast = object.find("fast")) options.budgets = texts(*fast);
  if (const auto slowdown = object.find("slowdown"))
    options.slowdown = not_negative(*slowdown, kMostSlowdown);
  if (const auto prices = object.find("prices")) {
    if (!prices->json().is_object()) prices->fail("an object of tiers and numbers is wanted");
    for (const auto& [tier, price] : prices->json().items()) {
      const JsonValue value(price, prices->place() + "." + tier);
      options.prices[tier] = not_negative(value, std::numeric_limits<double>::max());
    }
  }
}

}  // namespace

Options read_options(const char* text, OptionsOf what) {
  Options options;
  options.planner = planners().front().name;
  const nlohmann::json json = parse_json(text == nullptr ? "{}" : text);
  const std::vector<std::string_view> known =
      what == OptionsOf::plan
          ? std::vector<std::string_view>{"machine", "slow", "planner", "fast", "budget", "seconds"}
          : std::vector<std::string_view>{"machine", "slow", "planner", "fast", "slowdown", "prices"};
  const JsonObject object(JsonValue(json, "options"), known);
  if (const auto machine = object.find("machine")) read_machine_value(options, *machine);
  if (const auto slow = object.find("slow")) options.slow = texts(*slow);
  if (const auto planner = object.find("planner")) options.planner = planner->text();
  what == OptionsOf::plan ? read_of_plan(options, object) : read_of_advice(options, object);
  return options;
}

std::vector<std::string> read_specs(const char* text) {
  if (text == nullptr) return {};
  const nlohmann::json json = parse_json(text);
  return texts(JsonValue(json, "slow"));
}

void set_machine(Options& options, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') {
    options.given = expect(machine_from_json(text));
  } else {
    options.machine = text;
  }
}

Machine machine_for(const Options& options, const ProgressSink& progress) {
  if (options.given && !options.slow.empty()) {
    throw ResultError({ErrorCode::invalid_argument,
                       "the tiers of a machine that is given are its own: give slow tiers for `this` only"});
  }
  if (options.given) return *options.given;
  const Graph none;
  WorkloadRequest request{none};
  request.machine = options.machine;
  request.slow = options.slow;
  request.progress = progress;
  return expect(machine_of(request));
}

}  // namespace terrace::capi

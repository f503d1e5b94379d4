// SPDX-License-Identifier: Apache-2.0
#include "planners/sentinel/options.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/similar.hpp"
#include "planners/option_values.hpp"

namespace terrace::sentinel {
namespace {

Result<void> parse_interval(std::string_view value, std::uint32_t& layers) {
  layers = 0;
  if (value == "auto" || (parse_number(value, layers) && layers > 0)) return {};
  return wrong_option("interval", "auto or a number of layers such as 8", value);
}

bool parse_list(std::string_view text, std::set<std::uint32_t>& numbers) {
  while (true) {
    const std::size_t comma = text.find(',');
    std::uint32_t number = 0;
    if (!parse_number(text.substr(0, comma), number)) return false;
    numbers.insert(number);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

Result<void> parse_end(std::string_view value, IntervalEnd& end) {
  constexpr std::string_view kList = "leave:";
  end = {};
  if (value == "trial") return {};
  end.rule = value == "leave" ? LateRule::leave : LateRule::wait;
  if (value == "wait" || value == "leave") return {};
  if (value.substr(0, kList.size()) == kList && parse_list(value.substr(kList.size()), end.leaving))
    return {};
  return wrong_option("end", "trial, wait, leave or a list of intervals such as leave:3,7", value);
}

constexpr std::string_view kNames[] = {"interval", "intervals", "reserve", "grouping", "end",
                                       "order",    "in_place",  "evict",   "below"};

Error unknown(std::string_view name) {
  const std::vector<std::string_view> names(std::begin(kNames), std::end(kNames));
  const auto closest = similar(name, names);
  return {ErrorCode::invalid_argument, fmt::format("sentinel has no option {}: take {}", name,
                                                   enumerated(closest.empty() ? names : closest, "or"))};
}

Result<void> parse_option(std::string_view name, std::string_view value, Options& options) {
  constexpr Word<bool> kOnOff[] = {{"on", true}, {"off", false}};
  if (name == "interval") return parse_interval(value, options.interval);
  if (name == "intervals")
    return parse_choice(name, value, {{"unequal", true}, {"equal", false}}, options.unequal);
  if (name == "reserve") {
    options.contiguous = value == "contiguous";
    return parse_choice(name, value, {{"contiguous", true}, {"on", true}, {"off", false}}, options.reserve);
  }
  if (name == "grouping")
    return parse_choice(
        name, value, {{"published", Grouping::published}, {"small", Grouping::small}, {"off", Grouping::off}},
        options.grouping);
  if (name == "end") return parse_end(value, options.end);
  if (name == "order")
    return parse_choice(name, value, {{"accesses", FetchOrder::accesses}, {"use", FetchOrder::use}},
                        options.order);
  if (name == "in_place") return parse_choice(name, value, kOnOff, options.in_place);
  if (name == "evict")
    return parse_choice(name, value, {{"room", false}, {"use", true}}, options.evict_after_use);
  if (name == "below")
    return parse_choice(name, value, {{"refuse", true}, {"plan", false}}, options.refuse_below);
  return unknown(name);
}

}  // namespace

Result<Options> parse_options(const PlanRequest& request) {
  return parse_each_option<Options>(request, parse_option);
}

}  // namespace terrace::sentinel

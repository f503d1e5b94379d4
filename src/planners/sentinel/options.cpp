// SPDX-License-Identifier: Apache-2.0
#include "planners/sentinel/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <initializer_list>
#include <utility>

#include "base/similar.hpp"

namespace terrace::sentinel {
namespace {

Error wrong(std::string_view name, std::string_view takes, std::string_view value) {
  return {ErrorCode::invalid_argument, fmt::format("{} is {}, and '{}' is given", name, takes, value)};
}

bool parse_number(std::string_view text, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

/// One of two words.
template <class T>
Result<void> parse_choice(std::string_view name, std::string_view value, std::pair<const char*, T> one,
                          std::pair<const char*, T> other, T& option) {
  if (value != one.first && value != other.first) {
    return wrong(name, fmt::format("{} or {}", one.first, other.first), value);
  }
  option = value == one.first ? one.second : other.second;
  return {};
}

Result<void> parse_interval(std::string_view value, std::uint32_t& layers) {
  layers = 0;
  if (value == "auto" || (parse_number(value, layers) && layers > 0)) return {};
  return wrong("interval", "auto or a number of layers such as 8", value);
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
  return wrong("end", "trial, wait, leave or a list of intervals such as leave:3,7", value);
}

constexpr std::string_view kNames[] = {"interval", "intervals", "reserve",  "grouping",
                                       "end",      "order",     "in_place", "below"};

Error unknown(std::string_view name) {
  const std::vector<std::string_view> names(std::begin(kNames), std::end(kNames));
  const auto closest = similar(name, names);
  return {ErrorCode::invalid_argument, fmt::format("sentinel has no option {}: take {}", name,
                                                   enumerated(closest.empty() ? names : closest, "or"))};
}

Result<void> parse_option(std::string_view name, std::string_view value, Options& options) {
  using Flag = std::pair<const char*, bool>;
  const Flag on{"on", true}, off{"off", false};
  if (name == "interval") return parse_interval(value, options.interval);
  if (name == "intervals")
    return parse_choice(name, value, Flag{"unequal", true}, Flag{"equal", false}, options.unequal);
  if (name == "reserve") return parse_choice(name, value, on, off, options.reserve);
  if (name == "grouping") return parse_choice(name, value, on, off, options.grouping);
  if (name == "end") return parse_end(value, options.end);
  if (name == "order")
    return parse_choice(name, value, std::pair{"accesses", FetchOrder::accesses},
                        std::pair{"use", FetchOrder::use}, options.order);
  if (name == "in_place") return parse_choice(name, value, on, off, options.in_place);
  if (name == "below")
    return parse_choice(name, value, Flag{"refuse", true}, Flag{"plan", false}, options.refuse_below);
  return unknown(name);
}

}  // namespace

Result<Options> parse_options(const PlanRequest& request) {
  Options options;
  for (const auto& [name, value] : request.options) {
    if (auto parsed = parse_option(name, value, options); !parsed) return parsed.error();
  }
  return options;
}

}  // namespace terrace::sentinel

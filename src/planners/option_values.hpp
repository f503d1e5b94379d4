// SPDX-License-Identifier: Apache-2.0
// Reads the values of planners' options.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "terrace/plan_request.hpp"
#include "terrace/result.hpp"

namespace terrace {

/// Reads all options of a request, each by `parse_option(name, value, options)`; the first that is wrong ends
/// it.
template <class Options, class Parse>
Result<Options> parse_each_option(const PlanRequest& request, Parse parse_option) {
  Options options;
  for (const auto& [name, value] : request.options) {
    if (auto parsed = parse_option(name, value, options); !parsed) return parsed.error();
  }
  return options;
}

/// `takes`: what the option takes, for a person, such as `a number of layers such as 8`.
Error wrong_option(std::string_view name, std::string_view takes, std::string_view value);

/// Returns whether the whole text is a number.
bool parse_number(std::string_view text, std::uint32_t& number);
bool parse_number(std::string_view text, double& number);

template <class T>
using Word = std::pair<std::string_view, T>;

/// The words in a sentence: `on or off`.
std::string either(std::span<const std::string_view> words);

/// One of several words.
template <class T, std::size_t N>
Result<void> parse_choice(std::string_view name, std::string_view value, const Word<T> (&words)[N],
                          T& option) {
  std::string_view names[N];
  for (std::size_t i = 0; i < N; ++i) {
    names[i] = words[i].first;
    if (value != words[i].first) continue;
    option = words[i].second;
    return {};
  }
  return wrong_option(name, either(names), value);
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "planners/option_values.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

#include "base/similar.hpp"

namespace terrace {
namespace {

template <class T>
bool parse(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Error wrong_option(std::string_view name, std::string_view takes, std::string_view value) {
  return {ErrorCode::invalid_argument, fmt::format("{} is {}, and '{}' is given", name, takes, value)};
}

bool parse_number(std::string_view text, std::uint32_t& number) { return parse(text, number); }
bool parse_number(std::string_view text, double& number) {
  return parse(text, number) && std::isfinite(number);
}

std::string either(std::span<const std::string_view> words) {
  return enumerated(std::vector<std::string_view>(words.begin(), words.end()), "or");
}

}  // namespace terrace

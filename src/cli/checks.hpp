// SPDX-License-Identifier: Apache-2.0
// What an option's text must be, checked before it is converted, so that the complaint is a sentence. Each
// returns a check for CLI11: it gives back an empty text, or what is wrong.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/similar.hpp"

namespace terrace::cli {

using TextCheck = std::function<std::string(const std::string&)>;

/// Returns whether the whole text is one number of that type.
template <class Number>
bool reads_as(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

template <class Integer = std::int64_t>
TextCheck whole_number(Integer least, Integer most = std::numeric_limits<Integer>::max()) {
  return [=](const std::string& text) -> std::string {
    Integer number = 0;
    if (reads_as(text, number) && number >= least && number <= most) return {};
    const bool open = most == std::numeric_limits<Integer>::max();
    return fmt::format(
        "'{}' does not fit: give a whole number {}", text,
        open ? fmt::format("of at least {}", least) : fmt::format("from {} to {}", least, most));
  };
}

inline TextCheck positive_number() {
  return [](const std::string& text) -> std::string {
    float number = 0;
    if (reads_as(text, number) && std::isfinite(number) && number > 0) return {};
    return fmt::format("'{}' does not fit: give a number above zero", text);
  };
}

inline TextCheck one_of(std::vector<std::string_view> words) {
  return [words = std::move(words)](const std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return {};
    return fmt::format("there is no '{}': choose {}", text, enumerated(words, "or"));
  };
}

}  // namespace terrace::cli

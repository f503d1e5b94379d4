// SPDX-License-Identifier: Apache-2.0
// Prints a benchmark's result: its last line is one JSON object with claim, aim, ratio, spread and details.
#pragma once

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "options.hpp"

namespace terrace::bench {

/// pre: not empty
inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}
inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

/// Returns the least and greatest value.
inline nlohmann::json spread(const std::vector<double>& values) {
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  return {*least, *greatest};
}

inline void print_result(const std::string& claim, const std::string& aim, double ratio,
                         nlohmann::json spread, nlohmann::json details) {
  const nlohmann::json result{{"claim", claim},
                              {"aim", aim},
                              {"ratio", ratio},
                              {"spread", std::move(spread)},
                              {"details", std::move(details)}};
  std::printf("%s\n", result.dump().c_str());
}

inline void print_line(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

/// Prints a table's head as Markdown.
inline void print_head(const std::string& title, const std::string& columns) {
  std::string rule = "|";
  for (const char c : columns.substr(1)) {
    if (c == '|') rule += "---|";
  }
  print_line("\n" + title + "\n\n" + columns + "\n" + rule);
}

/// Runs a benchmark whose only option is --quick. An exception is printed as one sentence and fails the
/// program.
template <class Run>
int guarded_main(int argc, char** argv, Run run) {
  return guarded(argv, [&] {
    bool quick = false;
    read_options(argc, argv, {{"--quick", [&] { quick = true; }}}, {});
    run(quick);
  });
}

}  // namespace terrace::bench

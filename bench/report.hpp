// What every benchmark prints: its last line is one JSON object with claim, aim, ratio, spread and details.
#pragma once

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace terrace::bench {

/// pre: not empty
inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}
inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

/// Least and greatest of what was measured.
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

inline bool has_flag(int argc, char** argv, std::string_view flag) {
  return std::any_of(argv + 1, argv + argc, [&](const char* argument) { return argument == flag; });
}

}  // namespace terrace::bench

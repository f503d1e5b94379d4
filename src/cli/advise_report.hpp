// What `terrace advise` tells: the curve, the answer, and what more would be worth.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/workload_options.hpp"
#include "planners/advice.hpp"
#include "planners/shadow_prices.hpp"

namespace terrace::cli {

struct AdviceReport {
  ModelChoice model;
  std::string planner;
  const Machine& machine;
  Bytes peak, all_fast;
  Seconds fast_only{0};
  std::optional<double> all_fast_price;
  std::vector<AdvicePoint> curve;
  double slowdown = 0;  ///< that was asked for
  AdvicePoint answer;
  ShadowPrices shadow;
};

/// Prices are of gigabytes of 1e9 bytes, and so are these: `41.2 GB`, `3.4 MB`.
std::string decimal_text(Bytes amount);
/// `3.1 ms`, `nothing`.
std::string worth_text(double seconds);

void print(const AdviceReport& report);
nlohmann::json to_json(const AdviceReport& report);

}  // namespace terrace::cli

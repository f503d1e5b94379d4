// SPDX-License-Identifier: Apache-2.0
// An advice: the curve of step times over budgets, the least budget for a slowdown, and what more would be
// worth there; and the same as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "planners/advice.hpp"
#include "planners/shadow_prices.hpp"

namespace terrace {

struct Advice {
  std::string planner;
  const Machine& machine;  ///< borrowed
  Bytes peak, all_fast;
  Seconds fast_only{0};
  std::optional<double> all_fast_price;
  std::vector<AdvicePoint> curve;
  double slowdown = 0;  ///< that was asked for
  AdvicePoint answer;
  ShadowPrices shadow;
};

/// The whole answer of an adviser that has drawn its curve. Fails as Adviser::least_for does.
Result<Advice> advice_of(Adviser& adviser, const AdviceRequest& request, double slowdown);

/// Returns what the plan's memory costs of what fast memory alone would; none where prices are missing.
std::optional<double> price_share(const Advice& advice, const AdvicePoint& point);
/// Returns which share of the whole the part is.
double share(Bytes part, Bytes whole);

nlohmann::json to_json(const Advice& advice);

}  // namespace terrace

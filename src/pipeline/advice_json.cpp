// SPDX-License-Identifier: Apache-2.0
#include "pipeline/advice_json.hpp"

#include <nlohmann/json.hpp>

#include "pipeline/plan_row.hpp"

namespace terrace {
namespace {

nlohmann::json or_null(const std::optional<double>& number) {
  return number ? nlohmann::json(*number) : nlohmann::json();
}

nlohmann::json point_json(const Advice& advice, const AdvicePoint& point) {
  return {{"budget_bytes", point.fast.count},
          {"share_of_peak", share(point.fast, advice.peak)},
          {"planner", point.plan->plan().planner},
          {"predicted_step_seconds", point.step.count()},
          {"bound_seconds", point.bound.count()},
          {"slowdown", point.slowdown},
          {"planned_bytes", peak_json(advice.machine, point.plan->plan().budget)},
          {"used_bytes", peak_json(advice.machine, point.used)},
          {"price", or_null(point.price)},
          {"price_share", or_null(price_share(advice, point))},
          {"verified", true}};
}

const char* name_of(PricedBy by) {
  switch (by) {
    case PricedBy::program:
      return "program";
    case PricedBy::moving_plan:
      return "moving_plan";
    case PricedBy::any_plan:
      return "any_plan";
  }
  return "";
}

nlohmann::json shadow_json(const Advice& advice) {
  const ShadowPrices& shadow = advice.shadow;
  auto tiers = nlohmann::json::object(), links = nlohmann::json::object();
  for (std::size_t tier = 0; tier < shadow.seconds_per_gigabyte.size(); ++tier)
    tiers[advice.machine.tiers[tier].name] = or_null(shadow.seconds_per_gigabyte[tier]);
  for (const LinkWorth& link : shadow.links)
    links[link_name(advice.machine, link.from, link.to)] = link.seconds_per_gigabyte_per_second;
  nlohmann::json json = {{"budget_bytes", advice.answer.fast.count},
                         {"seconds_per_gigabyte", tiers},
                         {"seconds_per_gigabyte_per_second", links},
                         {"priced_by", nullptr},
                         {"priced_bound_seconds", nullptr}};
  if (shadow.memory) {
    json["priced_by"] = name_of(shadow.memory->by);
    json["priced_bound_seconds"] = shadow.memory->bound.count();
  } else {
    json["reason"] = shadow.reason;
  }
  return json;
}

}  // namespace

Result<Advice> advice_of(Adviser& adviser, const AdviceRequest& request, double slowdown) {
  auto answer = adviser.least_for(slowdown);
  if (!answer) return answer.error();
  PlanRequest there{request.graph, request.machine, request.profile, request.budget};
  there.budget[0] = answer->fast;
  ShadowPrices shadow = shadow_prices(there, answer->plan->plan(), request.planner);
  return Advice{request.planner,     request.machine,          adviser.peak(),  adviser.all_fast(),
                adviser.fast_only(), adviser.all_fast_price(), adviser.curve(), slowdown,
                *std::move(answer),  std::move(shadow)};
}

double share(Bytes part, Bytes whole) {
  return static_cast<double>(part.count) / static_cast<double>(whole.count);
}

std::optional<double> price_share(const Advice& advice, const AdvicePoint& point) {
  if (!point.price || !advice.all_fast_price || *advice.all_fast_price <= 0) return std::nullopt;
  return *point.price / *advice.all_fast_price;
}

nlohmann::json to_json(const Advice& advice) {
  auto curve = nlohmann::json::array();
  for (const AdvicePoint& point : advice.curve) {
    curve.push_back(point_json(advice, point));
    curve.back()["frontier"] = point.frontier;
  }
  return {{"machine", advice.machine.name},
          {"planner", advice.planner},
          {"graph_peak_bytes", advice.peak.count},
          {"fast_only_seconds", advice.fast_only.count()},
          {"fast_only_bytes", advice.all_fast.count},
          {"fast_only_price", or_null(advice.all_fast_price)},
          {"slowdown", advice.slowdown},
          {"curve", curve},
          {"least", point_json(advice, advice.answer)},
          {"shadow_prices", shadow_json(advice)}};
}

}  // namespace terrace

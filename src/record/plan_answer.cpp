// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/json_reader.hpp"
#include "record/plan_question.hpp"

namespace terrace {
namespace {

using Json = nlohmann::json;

/// Counts regions with and without an offset, and gives the latter one.
struct Offsets {
  std::size_t given = 0, missing = 0;

  void complete(Json& region, std::size_t full) {
    if (!region.is_array()) return;
    if (region.size() == full) ++given;
    if (region.size() != full - 1) return;
    ++missing;
    region.push_back(0);
  }
};

Json budget_json(const PlanRequest& request) {
  Json budget = Json::array();
  for (const Bytes bytes : request.budget) budget.push_back(bytes.count);
  return budget;
}

/// What a program that only decides need not repeat.
void complete(Json& plan, const PlanRequest& request) {
  const Json others = {{"format", "terrace-plan"},
                       {"version", 1},
                       {"planner", "outside"},
                       {"graph", fingerprint(request.graph)},
                       {"machine", fingerprint(request.machine)},
                       {"profile", fingerprint(request.profile)},
                       {"budget", budget_json(request)},
                       {"prediction", {{"step", 0}, {"bound", 0}, {"exposed", 0}, {"moved", Json::array()}}},
                       {"start", Json::array()}};
  for (const auto& [key, value] : others.items()) {
    if (!plan.contains(key)) plan[key] = value;
  }
}

}  // namespace

Result<PlanAnswer> read_answer(std::string_view text, const PlanRequest& request) {
  Offsets offsets;
  std::string whole;
  try {
    Json plan = parse_json(text);
    if (!plan.is_object() || !plan.contains("instructions"))
      throw JsonError("an object with the key 'instructions' is wanted");
    complete(plan, request);
    for (Json& region : plan["start"]) offsets.complete(region, 3);
    for (Json& one : plan["instructions"]) {
      if (one.is_array() && !one.empty() && one[0] == "alloc") offsets.complete(one, 4);
    }
    whole = plan.dump();
  } catch (const JsonError& error) {
    return Error{ErrorCode::invalid_argument, fmt::format("cannot read the plan: {}", error.what())};
  } catch (const Json::type_error&) {
    return Error{ErrorCode::invalid_argument, "cannot read the plan: its text is not UTF-8"};
  }
  auto plan = plan_from_json(whole);
  if (!plan) return plan.error();
  if (offsets.given > 0 && offsets.missing > 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} regions have offsets and {} have none: give all of them or leave all out",
                             offsets.given, offsets.missing)};
  }
  return PlanAnswer{*std::move(plan), offsets.missing == 0};
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/json_reader.hpp"
#include "migration/plan_writer.hpp"
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

/// Whether every region is made once, where the graph and the machine have its tensor and tier, and is there
/// when it ends.
bool holds_together(const PlanRequest& request, const Plan& plan) {
  const std::size_t tiers = request.machine.tiers.size();
  std::vector<bool> there(request.graph.tensors.size() * tiers);
  const auto set = [&](TensorId tensor, TierId tier, bool now) {
    if (tensor.index >= request.graph.tensors.size() || tier.index >= tiers) return false;
    auto region = there[tensor.index * tiers + tier.index];
    if (region == now) return false;
    region = now;
    return true;
  };
  for (const Alloc& region : plan.start) {
    if (!set(region.tensor, region.tier, true)) return false;
  }
  for (const Instruction& one : plan.instructions) {
    const auto* alloc = std::get_if<Alloc>(&one);
    const auto* free = std::get_if<Free>(&one);
    if (alloc != nullptr && !set(alloc->tensor, alloc->tier, true)) return false;
    if (free != nullptr && !set(free->tensor, free->tier, false)) return false;
  }
  return true;
}

/// The instructions that make a region of the start again for good: it lies where it was.
std::vector<bool> restoring(const PlanRequest& request, const Plan& plan) {
  const std::size_t tiers = request.machine.tiers.size();
  constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::size_t> last(request.graph.tensors.size() * tiers, kNone);
  std::vector<bool> from_start(last.size()), restores(plan.instructions.size());
  const auto place = [&](TensorId tensor, TierId tier) { return tensor.index * tiers + tier.index; };
  for (const Alloc& region : plan.start) from_start[place(region.tensor, region.tier)] = true;
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    if (const auto* alloc = std::get_if<Alloc>(&plan.instructions[i])) last[place(alloc->tensor, alloc->tier)] = i;
    if (const auto* free = std::get_if<Free>(&plan.instructions[i])) last[place(free->tensor, free->tier)] = kNone;
  }
  for (std::size_t i = 0; i < last.size(); ++i) {
    if (last[i] != kNone && from_start[i]) restores[last[i]] = true;
  }
  return restores;
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

Plan with_offsets(const PlanRequest& request, Plan plan) {
  plan.budget = request.budget;
  if (!holds_together(request, plan)) return plan;
  const std::vector<bool> restores = restoring(request, plan);
  PlanWriter writer(request, plan.planner);
  for (const Alloc& region : plan.start) writer.start(region.tensor, region.tier);
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    if (const auto* alloc = std::get_if<Alloc>(&plan.instructions[i])) {
      restores[i] ? writer.restore(alloc->tensor, alloc->tier) : writer.alloc(alloc->tensor, alloc->tier);
    } else if (const auto* free = std::get_if<Free>(&plan.instructions[i])) {
      writer.free(free->tensor, free->tier);
    } else {
      writer.wait(0);  // Whatever else happens takes its place in time, and no room.
    }
  }
  Draft draft = writer.finish();
  plan.start = std::move(draft.plan.start);
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    if (auto* alloc = std::get_if<Alloc>(&plan.instructions[i]))
      alloc->offset = std::get<Alloc>(draft.plan.instructions[i]).offset;
  }
  plan.budget = std::move(draft.needed);
  return plan;
}

}  // namespace terrace

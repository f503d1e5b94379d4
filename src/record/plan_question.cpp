// SPDX-License-Identifier: Apache-2.0
#include "record/plan_question.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plan/step_uses.hpp"
#include "migration/variant_choice.hpp"
#include "profile/roofline.hpp"
#include "terrace/graph_json.hpp"
#include "terrace/profile_json.hpp"

namespace terrace {
namespace {

using Json = nlohmann::json;

Json next_json(std::uint32_t kernel) { return kernel == kNever ? Json() : Json(kernel); }

Json uses_json(const StepUses& uses) {
  Json all = Json::array();
  for (std::uint32_t kernel = 0; kernel <= uses.kernels(); ++kernel) {
    Json& its = all.emplace_back(Json::array());
    for (const Use& use : uses.of(kernel))
      its.push_back({use.tensor.index, use.reads, use.writes, next_json(use.next), use.next_reads});
  }
  return all;
}

Json sizes_json(const PlanRequest& request) {
  Json all = Json::array();
  for (const Tensor& tensor : request.graph.tensors) {
    Json& its = all.emplace_back(Json::array());
    for (const MachineTier& tier : request.machine.tiers)
      its.push_back(round_up(tensor.bytes, tier.granularity).count);
  }
  return all;
}

Json derived(const PlanRequest& request) {
  const StepUses uses(request.graph);
  Json first = Json::array(), operands = Json::array(), variants = Json::array(), spill = Json::array();
  for (std::uint32_t i = 0; i < request.graph.tensors.size(); ++i)
    first.push_back({next_json(uses.first({i})), uses.first_reads({i})});
  for (std::uint32_t i = 0; i < request.graph.kernels.size(); ++i) {
    operands.push_back(operand_count(request.graph.kernels[i]));
    variants.push_back(fastest_variant(request.graph, request.profile, {i}));
  }
  for (std::uint32_t i = 1; i < request.machine.tiers.size(); ++i) {
    if (request.machine.is_linked_both_ways({0}, {i})) spill.push_back(i);
  }
  return {{"uses", uses_json(uses)},
          {"first", first},
          {"sizes", sizes_json(request)},
          {"operands", operands},
          {"variants", variants},
          {"spill_tiers", spill},
          {"least", least_budget(request.graph, request.machine).bytes.count}};
}

}  // namespace

std::string plan_question(const PlanRequest& request) {
  Json budget = Json::array();
  for (const Bytes bytes : request.budget) budget.push_back(bytes.count);
  std::string text = fmt::format("{{\"format\":\"terrace-request\",\"version\":1,\"seed\":{},\"budget\":{},\n",
                                 request.seed, budget.dump());
  text += "\"graph\":" + to_json_text(request.graph);
  text += ",\"machine\":" + to_json(request.machine);
  text += ",\"profile\":" + to_json(request.profile);
  return text + ",\"derived\":" + derived(request).dump() + "}\n";
}

}  // namespace terrace

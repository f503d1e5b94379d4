// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/json_reader.hpp"
#include "plan/plan_keys.hpp"
#include "terrace/plan.hpp"

namespace terrace {
namespace {

std::uint32_t index(const JsonValue& json) {
  return static_cast<std::uint32_t>(json.integer(0, std::numeric_limits<std::uint32_t>::max()));
}
std::uint64_t amount(const JsonValue& json) {
  return static_cast<std::uint64_t>(json.integer(0, plan_keys::kMost));
}
Seconds time(const JsonValue& json) {
  const double seconds = json.number();
  if (seconds < 0) json.fail(fmt::format("a time not below zero is wanted, not {}", seconds));
  return Seconds{seconds};
}
TensorId tensor(const JsonValue& json) { return {index(json)}; }
TierId tier(const JsonValue& json) { return {index(json)}; }

void need_size(const JsonValue& json, std::size_t size, const char* form) {
  if (json.size() != size) json.fail(fmt::format("{} is wanted", form));
}

Alloc read_start(const JsonValue& json) {
  need_size(json, 3, "[tensor, tier, offset]");
  return {tensor(json[0]), tier(json[1]), amount(json[2])};
}

Traffic read_traffic(const JsonValue& json) {
  need_size(json, 3, "[from, to, bytes]");
  return {tier(json[0]), tier(json[1]), Bytes{amount(json[2])}};
}

/// What says how an instruction works beside others stands behind the rest, and only where there is something
/// to say.
Copy read_copy(const JsonValue& json) {
  const bool has_lanes = json.size() == 6;
  if (!has_lanes) need_size(json, 5, "[\"copy\", [tensors], from, to, ticket]");
  Copy copy{read_list(json[1], tensor), tier(json[2]), tier(json[3]), index(json[4]), {}};
  if (!has_lanes) return copy;
  const JsonObject lanes(json[5], plan_keys::kCopyLanes);
  if (const auto after = lanes.find("after")) copy.after = read_list(*after, index);
  return copy;
}

Run read_run(const JsonValue& json) {
  const bool has_lanes = json.size() == 5;
  if (!has_lanes) need_size(json, 4, "[\"run\", kernel, variant, [tiers]]");
  Run run{{index(json[1])}, index(json[2]), read_list(json[3], tier), {}, {}, {}};
  if (!has_lanes) return run;
  const JsonObject lanes(json[4], plan_keys::kRunLanes);
  if (const auto engine = lanes.find("engine")) run.engine = {index(*engine)};
  if (const auto ticket = lanes.find("ticket")) run.ticket = index(*ticket);
  if (const auto after = lanes.find("after")) run.after = read_list(*after, index);
  return run;
}

Instruction read_instruction(const JsonValue& json) {
  if (json.size() == 0) json.fail("an instruction begins with its name");
  const JsonValue first = json[0];
  const std::string& name = first.text();
  if (name == "alloc") {
    need_size(json, 4, "[\"alloc\", tensor, tier, offset]");
    return Alloc{tensor(json[1]), tier(json[2]), amount(json[3])};
  }
  if (name == "free") {
    need_size(json, 3, "[\"free\", tensor, tier]");
    return Free{tensor(json[1]), tier(json[2])};
  }
  if (name == "copy") return read_copy(json);
  if (name == "wait") {
    need_size(json, 2, "[\"wait\", ticket]");
    return Wait{index(json[1])};
  }
  if (name == "run") return read_run(json);
  first.fail(fmt::format("{} is not known; there are alloc, free, copy, wait, run", in_quotes(name)));
}

Prediction read_prediction(const JsonValue& json) {
  const JsonObject object(json, plan_keys::kPrediction);
  return {time(object.need("step")), time(object.need("bound")), time(object.need("exposed")),
          read_list(object.need("moved"), read_traffic)};
}

Plan read(const JsonValue& json) {
  const JsonObject object =
      open_format(json, {"plan", plan_keys::kFormat, plan_keys::kVersion}, plan_keys::kPlan);
  Plan plan;
  plan.planner = object.need("planner").text();
  if (const auto remark = object.find("remark")) plan.remark = remark->text();
  plan.graph = object.need("graph").text();
  plan.machine = object.need("machine").text();
  plan.profile = object.need("profile").text();
  plan.budget = read_list(object.need("budget"), [](const JsonValue& bytes) { return Bytes{amount(bytes)}; });
  plan.prediction = read_prediction(object.need("prediction"));
  plan.start = read_list(object.need("start"), read_start);
  plan.instructions = read_list(object.need("instructions"), read_instruction);
  return plan;
}

}  // namespace

Result<Plan> plan_from_json(std::string_view text) { return read_json(text, "plan", read); }

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "pipeline/plan_row.hpp"

#include <nlohmann/json.hpp>

#include "base/median.hpp"

namespace terrace {
namespace {

nlohmann::json seconds(const std::optional<Seconds>& time) {
  return time ? nlohmann::json(time->count()) : nlohmann::json();
}

std::map<std::string, std::size_t> variants_run(const Graph& graph, const Plan& plan) {
  std::map<std::string, std::size_t> counts;
  for (const Instruction& instruction : plan.instructions) {
    const auto* run = std::get_if<Run>(&instruction);
    if (run == nullptr || graph[run->kernel].variants.size() < 2) continue;
    ++counts[graph[run->kernel].variants[run->variant].name];
  }
  return counts;
}

std::string_view name_of(Moment moment) {
  switch (moment) {
    case Moment::start:
      return "start";
    case Moment::instruction:
      return "instruction";
    case Moment::end:
      return "end";
  }
  return "";
}

}  // namespace

PlanRow refused_row(const Workload& workload, Bytes fast, const std::string& planner,
                    const std::string& reason) {
  PlanRow row;
  row.planner = planner;
  row.fast = fast;
  row.reason = reason;
  row.kernels = workload.graph().kernels.size();
  row.tensors = workload.graph().tensors.size();
  row.split_kernels = workload.split_kernels;
  return row;
}

PlanRow plan_row(const Workload& workload, const Profile& profile, const std::vector<Bytes>& budget,
                 const std::string& planner, const std::stop_token& stop, const ProgressSink& progress) {
  PlanRow row = refused_row(workload, budget[0], planner, {});
  row.fast_only = KernelClock(workload.graph(), workload.machine, profile).fast_step();
  row.slow_only = slow_only(workload, profile);
  const PlanFunction named = planner_named(planner, stop);
  auto planned = plan_of(workload, profile, budget, [&](const PlanRequest& request) {
    PlanRequest told = request;
    told.progress = progress;
    return named(told);
  });
  if (planned) {
    row.planned = *std::move(planned);
    row.variants = variants_run(workload.graph(), row.planned->plan.plan());
  } else {
    row.reason = planned.error().message;
    row.code = planned.error().code;
  }
  return row;
}

std::string link_name(const Machine& machine, TierId from, TierId to) {
  return machine[from].name + ">" + machine[to].name;
}

nlohmann::json moved_json(const Machine& machine, const std::vector<Traffic>& moved) {
  auto json = nlohmann::json::object();
  for (const Traffic& traffic : moved)
    json[link_name(machine, traffic.from, traffic.to)] = traffic.bytes.count;
  return json;
}

nlohmann::json peak_json(const Machine& machine, const std::vector<Bytes>& peak) {
  auto json = nlohmann::json::object();
  for (std::size_t i = 0; i < peak.size(); ++i) json[machine.tiers[i].name] = peak[i].count;
  return json;
}

nlohmann::json violations_json(const std::vector<Violation>& found) {
  auto list = nlohmann::json::array();
  for (const Violation& violation : found) {
    list.push_back({{"moment", name_of(violation.moment)},
                    {"instruction", violation.instruction},
                    {"reason", violation.reason}});
  }
  return list;
}

nlohmann::json to_json(const Workload& workload, const PlanRow& row) {
  nlohmann::json json = {{"machine", workload.machine.name},
                         {"planner", row.planner},
                         {"budget_bytes", row.fast.count},
                         {"predicted_step_seconds", nullptr},
                         {"fast_only_seconds", row.fast_only.count()},
                         {"slow_only_seconds", seconds(row.slow_only)},
                         {"bound_seconds", nullptr},
                         {"gap", nullptr},
                         {"plan_seconds", nullptr},
                         {"moved_bytes", nlohmann::json::object()},
                         {"exposed_seconds", nullptr},
                         {"kernels", row.kernels},
                         {"tensors", row.tensors},
                         {"verified", row.planned.has_value()},
                         {"graph_peak_bytes", workload.peak.count},
                         {"split_kernels", row.split_kernels}};
  if (!row.reason.empty()) json["reason"] = row.reason;
  if (!row.planned) return json;
  const Plan& plan = row.planned->plan.plan();
  json.update({{"predicted_step_seconds", plan.prediction.step.count()},
               {"bound_seconds", plan.prediction.bound.count()},
               {"gap", plan.prediction.gap()},
               {"plan_seconds", row.planned->planning.count()},
               {"moved_bytes", moved_json(workload.machine, plan.prediction.moved)},
               {"exposed_seconds", plan.prediction.exposed.count()},
               {"least_budget_bytes", row.planned->least.bytes.count},
               {"planned_bytes", peak_json(workload.machine, plan.budget)},
               {"instructions", plan.instructions.size()},
               {"variants", row.variants}});
  if (!plan.remark.empty()) json["remark"] = plan.remark;
  if (!row.measured_steps.empty()) {
    json["step_seconds"] = row.measured_steps;
    json["median_step_seconds"] = median(row.measured_steps);
  }
  return json;
}

}  // namespace terrace

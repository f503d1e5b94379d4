// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_reader.hpp"
#include "base/stop_after.hpp"
#include "capi/guard.hpp"
#include "capi/options.hpp"
#include "capi/watch.hpp"
#include "pipeline/advice_json.hpp"
#include "pipeline/fast_budget.hpp"
#include "pipeline/plan_row.hpp"
#include "pipeline/replay.hpp"
#include "record/outside_planner.hpp"
#include "terrace/graph_json.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/simulate.hpp"

namespace terrace::capi {
namespace {

/// A graph on a machine, as all functions here need it.
struct Prepared {
  Graph graph;
  Workload workload;
  std::vector<Bytes> budget;
};

[[noreturn]] void refuse(std::string sentence) {
  throw ResultError({ErrorCode::invalid_argument, std::move(sentence)});
}

std::vector<Bytes> budget_for(const Workload& workload, const Options& options) {
  if (!options.budget) return expect(budget_of(workload, options.fast));
  const auto& tiers = workload.machine.tiers;
  if (options.budget->size() != tiers.size()) {
    refuse(fmt::format("options.budget has {} amounts, and machine {} has {} tiers", options.budget->size(),
                       workload.machine.name, tiers.size()));
  }
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    if ((*options.budget)[i] <= tiers[i].capacity) continue;
    refuse(fmt::format("options.budget[{}] is {}, more than the {} of {}: give less", i,
                       readable((*options.budget)[i]), readable(tiers[i].capacity), tiers[i].name));
  }
  return *options.budget;
}

Prepared prepared(const char* graph, const Options& options, const ProgressSink& progress) {
  Prepared made{expect(graph_from_json(graph)), {}, {}};
  WorkloadRequest request{made.graph};
  request.machine = options.given ? options.given->name : options.machine;
  request.progress = progress;
  made.workload = expect(prepare(request, machine_for(options, progress)));
  made.budget = budget_for(made.workload, options);
  made.workload = expect(fit(request, std::move(made.workload), made.budget[0]));
  return made;
}

Record record_of(const Prepared& prepared, const Profile& profile, const Plan& plan) {
  Record record;
  record.model = prepared.graph.name;
  record.graph = prepared.workload.graph();
  record.machine = prepared.workload.machine;
  record.profile = profile;
  record.budget = prepared.budget;
  record.peak = prepared.workload.peak;
  record.split_kernels = prepared.workload.split_kernels;
  record.plan = plan;
  return record;
}

/// Stops where the caller says so or the time is over.
PlanRow planned(const Prepared& prepared, const Profile& profile, const Options& options,
                const std::stop_token& stop) {
  const auto plan = [&](const std::stop_token& token) {
    return plan_row(prepared.workload, profile, prepared.budget, options.planner, token);
  };
  if (!options.seconds) return plan(stop);
  StopAfter limit(Seconds{*options.seconds});
  const std::stop_callback asked(stop, [&] { limit.stop(); });
  return plan(limit.token());
}

void plan(const char* graph, const char* text, const terrace_watch* watch, char** record, char** summary) {
  require(graph != nullptr, "terrace_plan wants a graph");
  const ProgressSink progress = sink_of(watch);
  const Options options = read_options(text, OptionsOf::plan);
  const Prepared on = prepared(graph, options, progress);
  const Profile profile = expect(profile_of(on.workload, on.budget, progress));
  progress(fmt::format("planning {} kernels with {}", on.workload.graph().kernels.size(), options.planner));
  const PlanRow row = planned(on, profile, options, token_of(watch));
  if (!row.planned) throw ResultError({row.code, row.reason});
  if (token_of(watch).stop_requested()) throw ResultError(stopped());
  const std::string made = record == nullptr ? "" : to_json(record_of(on, profile, row.planned->plan.plan()));
  nlohmann::json told = to_json(on.workload, row);
  told["model"] = on.graph.name;
  char* const its_summary = summary == nullptr ? nullptr : copied(told.dump());
  try {
    if (record != nullptr) *record = copied(made);
  } catch (...) {
    terrace_text_free(its_summary);
    throw;
  }
  if (summary != nullptr) *summary = its_summary;
}

Record record_in(const char* text) {
  require(text != nullptr, "a record is wanted");
  Record record = expect(record_from_json(text));
  if (!record.plan) refuse("the record is one without a plan: plan first");
  return record;
}

nlohmann::json verify_json(const char* text) {
  const Record record = record_in(text);
  const auto found = violations(record.graph, record.machine, *record.plan);
  return {{"model", record.model},           {"machine", record.machine.name},
          {"planner", record.plan->planner}, {"instructions", record.plan->instructions.size()},
          {"safe", found.empty()},           {"violations", violations_json(found)}};
}

nlohmann::json simulate_json(const char* text, const char* other, const terrace_watch* watch) {
  Record record = record_in(text);
  const std::string planned_for = record.machine.name;
  if (other != nullptr) {
    Options options;
    set_machine(options, other);
    Machine machine = machine_for(options, sink_of(watch));
    expect(has_tiers_for(record, machine));
    if (fingerprint(machine) != fingerprint(record.machine)) {
      record.plan = expect(moved_to(record, machine));
      record.profile = estimate(record.graph, machine);
      record.machine = std::move(machine);
    }
  }
  const Plan& plan = *record.plan;
  const auto found = violations(record.graph, record.machine, plan, 1);
  if (!found.empty()) {
    refuse(fmt::format("the plan is not safe on machine {}: {}", record.machine.name,
                       to_text(found.front(), record.graph, record.machine, plan)));
  }
  const Timeline timeline = simulate(record.graph, record.machine, record.profile, plan);
  const Seconds bound = step_bound({record.graph, record.machine, record.profile, plan.budget}).step;
  return {{"model", record.model},
          {"machine", record.machine.name},
          {"planned_for", planned_for},
          {"planner", plan.planner},
          {"predicted_step_seconds", timeline.step.count()},
          {"planned_step_seconds", plan.prediction.step.count()},
          {"bound_seconds", bound.count()},
          {"exposed_seconds", timeline.exposed.count()},
          {"moved_bytes", moved_json(record.machine, timeline.moved)},
          {"peak_bytes", peak_json(record.machine, timeline.peak)}};
}

std::vector<std::optional<double>> prices_of(const Options& options, const Machine& machine) {
  std::vector<std::optional<double>> prices;
  std::size_t found = 0;
  for (const MachineTier& tier : machine.tiers) {
    const auto given = options.prices.find(tier.name);
    found += given != options.prices.end() ? 1 : 0;
    prices.push_back(given != options.prices.end() ? given->second : tier.price);
  }
  if (found < options.prices.size())
    refuse(fmt::format("options.prices names a tier that machine {} has not", machine.name));
  return prices;
}

nlohmann::json advise_json(const char* graph, const char* text, const terrace_watch* watch) {
  require(graph != nullptr, "terrace_advise wants a graph");
  const Options options = read_options(text, OptionsOf::advice);
  if (is_outside_planner(options.planner))
    refuse("advice plans dozens of times, with planners of terrace_planners only");
  const ProgressSink progress = sink_of(watch);
  const Prepared on = prepared(graph, options, progress);
  const Profile profile = expect(profile_of(on.workload, on.budget, progress));
  const AdviceRequest asked{on.workload.graph(),
                            on.workload.machine,
                            profile,
                            on.budget,
                            options.planner,
                            prices_of(options, on.workload.machine),
                            [&](Bytes fast) { progress(fmt::format("planning for {}", readable(fast))); }};
  Adviser adviser(asked);
  std::vector<Bytes> budgets;
  for (const std::string& fast : options.budgets)
    budgets.push_back(expect(parse_fast_budget(fast, adviser.peak())));
  expect(adviser.plan_for_all(std::move(budgets)));
  nlohmann::json json = to_json(expect(advice_of(adviser, asked, options.slowdown)));
  json["model"] = on.graph.name;
  return json;
}

nlohmann::json graph_json(const char* text) {
  require(text != nullptr, "a graph is wanted");
  const Graph graph = expect(graph_from_json(text));
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : graph.tensors) bytes += tensor.bytes.count;
  double flops = 0;
  for (const Kernel& kernel : graph.kernels) flops += kernel.flops;
  return {{"name", graph.name},
          {"kernels", graph.kernels.size()},
          {"tensors", graph.tensors.size()},
          {"peak_bytes", Lifetimes(graph).peak_bytes().count},
          {"bytes", bytes},
          {"flops", flops},
          {"fingerprint", fingerprint(graph)}};
}

template <class Infos>
nlohmann::json list_of(const Infos& infos) {
  auto list = nlohmann::json::array();
  for (const auto& info : infos) list.push_back({{"name", info.name}, {"summary", info.summary}});
  return list;
}

/// Gives back one JSON text, or a status where making it fails.
template <class Make>
int give(char** json, Make make) {
  return guarded([&] {
    require(json != nullptr, "the result wants a place");
    *json = copied(make().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

}  // namespace
}  // namespace terrace::capi

using namespace terrace::capi;

terrace_stop* terrace_stop_new(void) {
  terrace_stop* made = nullptr;
  guarded([&] { made = new terrace_stop; });
  return made;
}
void terrace_stop_request(terrace_stop* stop) {
  if (stop != nullptr) stop->source.request_stop();
}
void terrace_stop_free(terrace_stop* stop) { delete stop; }

int terrace_planners(char** json) {
  return give(json, [] { return list_of(terrace::planners()); });
}

int terrace_machines(char** json) {
  return give(json, [] { return list_of(terrace::machine_presets()); });
}

int terrace_machine(const char* name, const char* slow, const terrace_watch* watch, char** json) {
  return guarded([&] {
    require(name != nullptr && json != nullptr, "terrace_machine wants a name and a place for the result");
    Options options;
    options.machine = name;
    options.slow = read_specs(slow);
    *json = copied(terrace::to_json(machine_for(options, sink_of(watch))));
  });
}

int terrace_graph_check(const char* graph, char** json) {
  return give(json, [&] { return graph_json(graph); });
}

int terrace_plan(const char* graph, const char* options, const terrace_watch* watch, char** record,
                 char** summary) {
  return guarded([&] { plan(graph, options, watch, record, summary); });
}

int terrace_verify(const char* record, char** json) {
  return give(json, [&] { return verify_json(record); });
}

int terrace_simulate(const char* record, const char* machine, const terrace_watch* watch, char** json) {
  return give(json, [&] { return simulate_json(record, machine, watch); });
}

int terrace_advise(const char* graph, const char* options, const terrace_watch* watch, char** json) {
  return give(json, [&] { return advise_json(graph, options, watch); });
}

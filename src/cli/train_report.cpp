// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/memory_limit.hpp"
#include "cli/plan_report.hpp"
#include "cli/train.hpp"

namespace terrace::cli {
namespace {

double samples_per_second(const TrainSetup& setup, const TrainRecord& record) {
  if (record.steps() == 0) return 0;
  return static_cast<double>(setup.batch) * static_cast<double>(record.steps()) / record.elapsed.count();
}

std::string how_it_ended(const TrainRequest& request, const TrainRecord& record) {
  const std::string resumed =
      record.first_step > 0 ? fmt::format(", resumed from the checkpoint of step {}", record.first_step) : "";
  if (record.end == TrainRecord::End::complete) return fmt::format("{} steps{}", record.steps(), resumed);
  return fmt::format("interrupted after step {} of {}{}", record.steps_done(), request.steps, resumed);
}

std::string trial_text(const TrialRecord& trial) {
  const std::string spent = fmt::format("{} steps for {} late intervals", trial.steps, trial.intervals);
  if (trial.answer.empty()) return spent + ", not finished: the next run begins anew";
  return fmt::format("{}, which decided for end={}", spent, trial.answer);
}

void row(std::string_view name, const std::string& value) { fmt::print("{:<16} {}\n", name, value); }

nlohmann::json planned_again_json(const PlannedRun& run, const TrainRecord& record) {
  auto all = nlohmann::json::array();
  for (const PlannedAgain& one : record.planned_again) {
    auto links = nlohmann::json::object();
    for (std::size_t i = 0; i < one.drift.links.size(); ++i)
      links[link_name(run.machine, run.machine.links[i].from, run.machine.links[i].to)] = one.drift.links[i];
    all.push_back({{"step", one.step},
                   {"kernels_slower", one.drift.kernels},
                   {"links_slower", links},
                   {"predicted_before_seconds", one.before.count()},
                   {"predicted_after_seconds", one.after.count()}});
  }
  return all;
}

nlohmann::json planned_json(const PlannedRun& run, const TrainRecord& record) {
  const Prediction& predicted = run.planned.plan->prediction;
  auto tiers = nlohmann::json::array();
  for (const MachineTier& tier : run.machine.tiers) tiers.push_back(tier.name);
  return {{"planner", run.planned.plan->planner},
          {"machine", run.machine.name},
          {"tiers", tiers},
          {"budget_bytes", run.planned.fast.count},
          {"graph_peak_bytes", run.graph_peak.count},
          {"split_kernels", run.split_kernels},
          {"least_budget_bytes", run.planned.least.bytes.count},
          {"peak_bytes", peak_json(run.machine, record.peak)},
          {"moved_bytes", moved_json(run.machine, record.moved)},
          {"exposed_seconds", median_or_zero(record.exposed_seconds)},
          {"predicted_step_seconds", predicted.step.count()},
          {"predicted_exposed_seconds", predicted.exposed.count()},
          {"bound_seconds", predicted.bound.count()},
          {"gap", predicted.gap()},
          {"plan_seconds", run.planned.planning.count()},
          {"planned_again", planned_again_json(run, record)}};
}

void print_planned(const TrainSetup& setup, const TrainRecord& record) {
  const PlannedRun& run = *setup.plan;
  const Prediction& predicted = run.planned.plan->prediction;
  row(setup.buckets ? "largest bucket" : "predicted step",
      fmt::format("{:.4f} s, {} above the bound of {:.4f} s", predicted.step.count(),
                  gap_text(predicted.gap()), predicted.bound.count()));
  row("planner", fmt::format("{}, in {:.2f} s", run.planned.plan->planner, run.planned.planning.count()));
  row("budget", fmt::format("{} of {}, {:.1f}% of the graph's peak of {}; the least is {}",
                            readable(run.planned.fast), run.machine.tiers[0].name,
                            100 * static_cast<double>(run.planned.fast.count) /
                                static_cast<double>(run.graph_peak.count),
                            readable(run.graph_peak), readable(run.planned.least.bytes)));
  if (run.split_kernels > 0) row("split", split_text(run.split_kernels, run.planned.fast));
  row("peak", peak_text(run.machine, record.peak));
  row("moved in a step", moved_text(run.machine, record.moved));
  row("exposed", fmt::format("{:.4f} s of a step", median_or_zero(record.exposed_seconds)));
  if (run.counting)
    row("profiling step", fmt::format("{:.2f} s, in which accesses were counted", run.counting->count()));
  if (record.trial.steps > 0) row("trial", trial_text(record.trial));
  for (const PlannedAgain& one : record.planned_again) {
    row("planned again",
        fmt::format("after step {}: the computer had drifted by a factor of {:.2f}, which makes {:.4f} s a "
                    "step and {:.4f} s under the new plan",
                    one.step, one.drift.largest(), one.before.count(), one.after.count()));
  }
}

}  // namespace

nlohmann::json to_json(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record) {
  const Program& program = setup.trainer->program(0);  // the largest, where lengths change
  nlohmann::json json = {
      {"model", request.model},
      {"batch", setup.batch},
      {"planner", "unlimited"},
      {"tiers", {"dram"}},
      {"budget_bytes", nullptr},
      {"peak_bytes", {{"dram", program.arena.count}}},
      {"graph_peak_bytes", program.peak.count},
      {"step_seconds", record.step_seconds},
      {"median_step_seconds", median_or_zero(record.step_seconds)},
      {"loss", record.loss},
      {"moved_bytes", nlohmann::json::object()},
      {"exposed_seconds", 0.0},
      {"predicted_step_seconds", nullptr},
      {"bound_seconds", nullptr},
      {"same_bits", record.same_bits ? nlohmann::json(*record.same_bits) : nlohmann::json()},
      {"seed", request.seed},
      {"threads", program.threads},
      {"parameters", parameters(program.graph)},
      {"samples_per_second", samples_per_second(setup, record)},
      {"resident_peak_bytes", record.resident.count},
      {"group_peak_bytes", record.group ? nlohmann::json(record.group->count) : nlohmann::json()},
      {"first_step", record.first_step},
      {"profiling_step_seconds",
       setup.plan && setup.plan->counting ? nlohmann::json(setup.plan->counting->count()) : nlohmann::json()},
      {"trial_steps", record.trial.steps},
      {"trial_remembered", setup.plan && setup.plan->trial_remembered},
  };
  if (setup.plan) json.update(planned_json(*setup.plan, record));
  if (setup.buckets) json.update(buckets_json(request, setup, record));
  if (record.test_accuracy) json["test_accuracy"] = *record.test_accuracy;
  return json;
}

void print_summary(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record) {
  const Program& program = setup.trainer->program(0);  // the largest, where lengths change
  row("model", fmt::format("{}, batch {}, {:.2f} M parameters, {} threads", request.model, setup.batch,
                           static_cast<double>(parameters(program.graph)) / 1e6, program.threads));
  row("run", how_it_ended(request, record));
  if (record.steps() > 0) {
    row("median step", fmt::format("{:.4f} s", median_or_zero(record.step_seconds)));
    row("throughput", fmt::format("{:.1f} samples/s", samples_per_second(setup, record)));
    row("final loss", fmt::format("{:.6f}", record.loss.back()));
  }
  if (record.test_accuracy) row("test accuracy", fmt::format("{:.2f}%", *record.test_accuracy * 100));
  if (setup.plan) {
    print_planned(setup, record);
  } else {
    row("graph peak", readable(program.peak));
    row("arena", readable(program.arena));
  }
  if (setup.buckets) print_buckets(request, setup, record);
  row("peak resident", readable(record.resident));
  if (record.group) row("peak of group", readable(*record.group));
  if (record.same_bits) row("same bits", *record.same_bits ? "yes: every loss and every tensor" : "no");
}

}  // namespace terrace::cli

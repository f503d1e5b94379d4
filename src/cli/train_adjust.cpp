// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/train.hpp"
#include "terrace/error.hpp"
#include "terrace/workload.hpp"

namespace terrace::cli {
namespace {

Result<void> try_to_change_plan(TrainSetup& setup, const VerifiedPlan& plan, const Machine& machine) try {
  const auto folder = cache_folder();
  if (!folder) return folder.error();
  return setup.trainer->change_plan(plan, machine, *folder);
} catch (const EnvironmentError& error) {
  if (setup.trainer->failed()) throw;
  return Error{ErrorCode::unsupported, error.what()};
}

}  // namespace

Result<void> change_plan(TrainSetup& setup, const VerifiedPlan& plan, const Machine& machine) {
  finish_checkpoint(setup);  // what fails here is a step that is not kept, and no matter of plans
  return try_to_change_plan(setup, plan, machine);
}

void begin_adjusting(const TrainRequest& request, const Graph& graph, Profile profile, PlannedRun& run) {
  // Another plan might choose variants with other bits.
  if (!request.adjust || request.variants == "any") return;
  Plan plan = run.planned.plan.plan();
  // What a trial decided is of this machine's intervals: on a drifted one the planner decides anew.
  const std::string name = request.planner.empty() ? plan.planner : request.planner;
  run.adjuster = std::make_unique<Adjuster>(graph, run.machine, std::move(profile), std::move(plan),
                                            planner_named(name), adjuster_options(name));
}

void adjust(TrainSetup& setup, TrainRecord& record, ProgressLine& line) {
  if (!setup.plan) return;
  PlannedRun& run = *setup.plan;
  std::unique_ptr<Adjuster>& adjuster = setup.buckets ? setup.buckets->in_training().adjuster : run.adjuster;
  if (!adjuster) return;
  auto better = setup.buckets ? setup.buckets->observe() : adjuster->observe(setup.trainer->timeline());
  if (!better) return;
  line.show("changing the plan");
  record.note_peak(setup.trainer->timeline().peak);
  if (const auto changed = change_plan(setup, better->plan, adjuster->machine()); !changed) {
    // Training goes on as well as before.
    line.say(fmt::format("the plan stays as it is: {}", changed.error().message));
    adjuster.reset();
    return;
  }
  record.planned_again.push_back({record.steps_done(), better->drift, better->before, better->after});
  if (setup.buckets) {
    TrainedGraph& changed = setup.buckets->in_training();
    changed.planned->plan = std::move(better->plan);
    if (&changed == &setup.buckets->largest()) run.planned.plan = changed.planned->plan;
  } else {
    run.machine = adjuster->machine();
    run.planned.plan = std::move(better->plan);
  }
}

}  // namespace terrace::cli

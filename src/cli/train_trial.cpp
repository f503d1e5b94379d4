// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cli/train.hpp"
#include "profile/measure.hpp"

namespace terrace::cli {
namespace {

void tell(ProgressLine& line, const std::string& text) {
  if (text.empty()) return;
  line.tell(text);
}

void show_trial(const PlanTrial& trial, ProgressLine& line) {
  line.show(fmt::format("trying {}, at most {} more steps", trial.plan()->planner, trial.steps_left()));
}

/// Returns whether the trainer follows the trial's plan now.
bool follow_trial(TrainSetup& setup, TrainRecord& record, ProgressLine& line) {
  PlannedRun& run = *setup.plan;
  record.note_peak(setup.trainer->timeline().peak);
  if (const auto changed = change_plan(setup, run.trial->plan(), run.machine); !changed) {
    tell(line, fmt::format("the trial ends and the plan stays as it is: {}", changed.error().message));
    return false;
  }
  run.planned.plan = run.trial->plan();
  return true;
}

void end_trial(const TrainRequest& request, TrainSetup& setup) {
  PlannedRun& run = *setup.plan;
  begin_adjusting(request, setup.trainer->program().graph, run.trial->profile(), run);
  run.trial.reset();
}

}  // namespace

void begin_trial(std::int64_t steps, const Program& program, const Profile& profile,
                 const std::vector<Bytes>& budget, PlannedRun& run, ProgressLine& line) {
  const VerifiedPlan& predicted = run.planned.plan;
  const auto store = profile_store_file();
  auto trial = std::make_unique<PlanTrial>(PlanTrial::Request{
      program.graph, run.machine, profile, budget, predicted->planner, predicted,
      static_cast<std::uint64_t>(std::max<std::int64_t>(steps, 0)),
      compute_key(*program.backend, program.threads), store ? *store : std::filesystem::path()});
  run.planned.plan = trial->plan();
  run.trial_remembered = trial->remembered();
  tell(line, trial->note());
  if (!trial->done()) run.trial = std::move(trial);
}

Trainer start_on_plan(Program program, const TrainerOptions& options, PlannedRun& run, ProgressLine& line) {
  if (!run.trial) return expect(Trainer::start(std::move(program), run.planned.plan, run.machine, options));
  Trainer trainer = expect(start_on_trial(*run.trial, program, run.machine, options));
  run.planned.plan = run.trial->plan();
  if (run.trial->done()) {
    tell(line, run.trial->note());
    run.trial.reset();
  } else {
    tell(line, fmt::format("trying whether {} late intervals wait for their tensors, in at most {} steps",
                           run.trial->intervals(), run.trial->steps_left()));
  }
  return trainer;
}

bool try_plans(const TrainRequest& request, TrainSetup& setup, TrainRecord& record, ProgressLine& line) {
  if (!setup.plan || !setup.plan->trial) return false;
  PlanTrial& trial = *setup.plan->trial;
  const bool changed = trial.observe(Seconds{record.step_seconds.back()});
  record.trial = {trial.steps(), trial.intervals(), trial.done() ? trial.answer() : ""};
  if (trial.done()) {
    tell(line, fmt::format("{} steps of trial decided for end={}", trial.steps(), trial.answer()));
    tell(line, trial.note());
  }
  if (record.steps_done() == request.steps) return true;
  const bool goes_on = (!changed || follow_trial(setup, record, line)) && !trial.done();
  if (goes_on) {
    show_trial(trial, line);
  } else {
    end_trial(request, setup);
  }
  return true;
}

}  // namespace terrace::cli

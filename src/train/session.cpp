// SPDX-License-Identifier: Apache-2.0
#include "terrace/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.hpp"
#include "pipeline/fast_budget.hpp"
#include "plan/reach.hpp"
#include "record/outside_planner.hpp"
#include "terrace/error.hpp"
#include "train/adjuster.hpp"
#include "train/synthetic_data.hpp"

namespace terrace {
namespace {

/// Leaves the work of a stage through the progress callback, the only point where it can be interrupted.
struct StopRequested {};

Error stopped_in(SessionStage stage) {
  return {ErrorCode::stopped, fmt::format("stopped on request in the stage `{}`", to_string(stage))};
}

}  // namespace

std::string_view to_string(SessionStage stage) {
  switch (stage) {
    case SessionStage::calibrate:
      return "calibrate";
    case SessionStage::compile:
      return "compile";
    case SessionStage::profile:
      return "profile";
    case SessionStage::plan:
      return "plan";
    case SessionStage::verify:
      return "verify";
    case SessionStage::train:
      return "train";
  }
  return "";
}

FillInputs synthetic_inputs(const Graph& graph, std::uint64_t seed) {
  return [data = std::make_shared<SyntheticData>(graph, seed)](std::uint64_t step, Trainer& trainer) {
    data->fill(step, trainer);
  };
}

struct Session::State {
  State(Graph asked, SessionOptions given) : graph(std::move(asked)), options(std::move(given)) {
    if (options.planner.empty()) options.planner = planners().front().name;
  }

  const Graph graph;  ///< as it was given
  SessionOptions options;
  std::optional<Machine> machine;
  std::optional<Workload> workload;
  std::vector<Bytes> budget;  ///< of each tier; set with the workload
  std::optional<Profile> profile;
  std::optional<Plan> plan;
  std::optional<VerifiedPlan> verified;
  std::optional<Trainer> trainer;
  std::optional<Adjuster> adjuster;  ///< none: the plan stays as it is

  void tell(SessionStage stage, const std::string& text) const {
    if (options.progress) options.progress({stage, text});
    if (options.stop.stop_requested()) throw StopRequested();
  }
  ProgressSink sink(SessionStage stage) const {
    return [this, stage](const std::string& text) { tell(stage, text); };
  }
  WorkloadRequest request(SessionStage stage) const {
    return {graph,       options.threads,       options.machine, options.slow,
            sink(stage), options.measure_again, options.backend};
  }

  /// Does a stage's work, unless a stop is requested before or meanwhile.
  template <class Work>
  Result<void> in_stage(SessionStage stage, Work work) const try {
    if (options.stop.stop_requested()) return stopped_in(stage);
    return work();
  } catch (const StopRequested&) {
    return stopped_in(stage);
  }

  Result<void> check_options() const;
  Result<void> have_machine();
  Result<void> have_workload();
  Result<void> have_profile();
  Result<void> have_plan();
  Result<void> have_proof();
  Result<void> require_budget(const Plan& given) const;
  Result<Program> compiled() const;
  Result<void> have_trainer();
  Result<void> start_in_memory();
  Result<void> start_planned();
  void step(const FillInputs& fill, TrainingRun& run);
  bool adjust();
};

/// Reads what costs nothing to read, so that a slip of the pen shows before minutes of measuring.
Result<void> Session::State::check_options() const {
  const auto known = is_outside_planner(options.planner) ? check_outside_planner(options.planner)
                                                         : check_planner(options.planner);
  if (!known) return known;
  if (auto valid = validate(graph); !valid) return valid.error();
  if (options.fast.empty()) return {};
  const auto fast = parse_fast_budget(options.fast, Bytes{1U << 30U});
  return fast ? Result<void>() : Result<void>(fast.error());
}

Result<void> Session::State::have_machine() {
  if (machine) return {};
  if (auto good = check_options(); !good) return good;
  return in_stage(SessionStage::calibrate, [&]() -> Result<void> {
    tell(SessionStage::calibrate, fmt::format("looking for machine {}", options.machine));
    auto found = machine_of(request(SessionStage::calibrate));
    if (!found) return found.error();
    machine = *std::move(found);
    return {};
  });
}

Result<void> Session::State::have_workload() {
  if (workload) return {};
  if (auto found = have_machine(); !found) return found;
  return in_stage(SessionStage::compile, [&]() -> Result<void> {
    const WorkloadRequest asked = request(SessionStage::compile);
    auto made = prepare(asked, *machine);
    if (!made) return made.error();
    auto given = budget_of(*made, options.fast);
    if (!given) return given.error();
    made = fit(asked, *std::move(made), given->front());
    if (!made) return made.error();
    workload = *std::move(made);
    budget = *std::move(given);
    return {};
  });
}

Result<void> Session::State::have_profile() {
  if (profile) return {};
  if (auto made = have_workload(); !made) return made;
  return in_stage(SessionStage::profile, [&]() -> Result<void> {
    tell(SessionStage::profile, fmt::format("timing {} kernels", workload->graph().kernels.size()));
    auto measured = profile_of(*workload, budget, sink(SessionStage::profile));
    if (!measured) return measured.error();
    profile = *std::move(measured);
    return {};
  });
}

Result<void> Session::State::have_plan() {
  if (plan) return {};
  if (auto measured = have_profile(); !measured) return measured;
  return in_stage(SessionStage::plan, [&]() -> Result<void> {
    tell(SessionStage::plan,
         fmt::format("planning {} kernels with {}", workload->graph().kernels.size(), options.planner));
    auto made = planner_named(options.planner,
                              options.stop)({workload->graph(), workload->machine, *profile, budget});
    if (options.stop.stop_requested()) return stopped_in(SessionStage::plan);
    if (!made) return made.error();
    trim_budget(workload->graph(), workload->machine, *made);
    plan = *std::move(made);
    return {};
  });
}

Result<void> Session::State::have_proof() {
  if (verified) return {};
  if (auto made = have_plan(); !made) return made;
  return in_stage(SessionStage::verify, [&]() -> Result<void> {
    tell(SessionStage::verify, fmt::format("verifying {} instructions", plan->instructions.size()));
    auto proven = terrace::verify(workload->graph(), workload->machine, *plan);
    if (!proven) return proven.error();
    verified = *std::move(proven);
    return {};
  });
}

/// A plan of somebody else may be safe and still take more than the session was given.
Result<void> Session::State::require_budget(const Plan& given) const {
  for (std::size_t i = 0; i < std::min(given.budget.size(), budget.size()); ++i) {
    if (given.budget[i] <= budget[i]) continue;
    return Error{
        ErrorCode::too_large,
        fmt::format("the plan takes {} of {} and {} is given: plan within that, or give more",
                    readable(given.budget[i]), workload->machine.tiers[i].name, readable(budget[i]))};
  }
  return {};
}

Result<void> Session::State::have_trainer() {
  if (trainer) return {};
  return options.fast.empty() && !plan ? start_in_memory() : start_planned();
}

Result<Program> Session::State::compiled() const {
  if (workload && workload->here) return workload->program;
  if (options.backend) return compile(graph, options.backend, options.threads);
  return compile(graph, options.threads);
}

/// Neither the machine nor a plan matters where every tensor has a place in memory.
Result<void> Session::State::start_in_memory() {
  if (auto good = check_options(); !good) return good;
  return in_stage(SessionStage::train, [&]() -> Result<void> {
    tell(SessionStage::compile, fmt::format("compiling {} kernels", graph.kernels.size()));
    auto program = compiled();
    if (!program) return program.error();
    tell(SessionStage::train, "taking memory and setting the weights");
    auto started = Trainer::start(*std::move(program), options.trainer);
    if (!started) return started.error();
    trainer = *std::move(started);
    return {};
  });
}

Result<void> Session::State::start_planned() {
  if (auto made = have_workload(); !made) return made;
  if (!workload->here) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("machine {} is not this computer, where training happens: leave `machine` out, or "
                    "measure this computer into a file",
                    workload->machine.name)};
  }
  if (auto proven = have_proof(); !proven) return proven;
  return in_stage(SessionStage::train, [&]() -> Result<void> {
    tell(SessionStage::train, "taking memory and setting the weights");
    auto started = Trainer::start(workload->program, *verified, workload->machine, options.trainer);
    if (!started) return started.error();
    trainer = *std::move(started);
    if (options.adjust && profile)
      adjuster.emplace(workload->graph(), workload->machine, *profile, verified->plan(),
                       planner_named(options.planner), adjuster_options(options.planner));
    return {};
  });
}

/// Returns whether another plan was taken up. Where one cannot be, training goes on under the present one.
bool Session::State::adjust() {
  if (!adjuster) return false;
  const auto better = adjuster->observe(trainer->timeline());
  if (!better) return false;
  try {
    const auto folder = cache_folder();
    if (folder && trainer->change_plan(better->plan, adjuster->machine(), *folder)) {
      verified = better->plan;
      return true;
    }
  } catch (const EnvironmentError&) {
    if (trainer->failed()) throw;
  }
  adjuster.reset();
  return false;
}

void Session::State::step(const FillInputs& fill, TrainingRun& run) {
  fill(trainer->steps_done(), *trainer);
  trainer->step();
  const Timeline& timeline = trainer->timeline();
  run.step_seconds.push_back(timeline.step);
  if (!trainer->program().graph.results.empty()) run.loss.push_back(trainer->result(0)[0]);
  run.peak.resize(timeline.peak.size());
  for (std::size_t i = 0; i < run.peak.size(); ++i) run.peak[i] = std::max(run.peak[i], timeline.peak[i]);
}

Session::Session(Graph graph, SessionOptions options)
    : state_(std::make_unique<State>(std::move(graph), std::move(options))) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Machine> Session::calibrate() {
  if (auto done = state_->have_machine(); !done) return done.error();
  return *state_->machine;
}

Result<Profile> Session::profile() {
  if (auto done = state_->have_profile(); !done) return done.error();
  return *state_->profile;
}

Result<Plan> Session::plan() {
  if (auto done = state_->have_plan(); !done) return done.error();
  return *state_->plan;
}

Result<VerifiedPlan> Session::verify() {
  if (auto done = state_->have_proof(); !done) return done.error();
  return *state_->verified;
}

Result<VerifiedPlan> Session::verify(Plan plan) {
  check(!state_->trainer, "the plan is changed before training begins");
  if (auto done = state_->have_workload(); !done) return done.error();
  if (auto fits = state_->require_budget(plan); !fits) return fits.error();
  auto proven = terrace::verify(state_->workload->graph(), state_->workload->machine, plan);
  if (!proven) return proven;
  state_->plan = std::move(plan);
  state_->verified = *proven;
  return proven;
}

Result<void> Session::start() { return state_->have_trainer(); }

Trainer& Session::trainer() {
  check(state_->trainer.has_value(), "training has begun");
  return *state_->trainer;
}

Result<TrainingRun> Session::train(std::uint64_t steps, const FillInputs& fill) {
  if (auto started = state_->have_trainer(); !started) return started.error();
  TrainingRun run;
  for (std::uint64_t i = 0; i < steps; ++i) {
    const auto going_on = state_->in_stage(SessionStage::train, [&]() -> Result<void> {
      state_->tell(SessionStage::train, fmt::format("step {} of {}", i + 1, steps));
      return {};
    });
    run.stopped = !going_on;
    if (run.stopped) break;
    state_->step(fill, run);
    if (state_->adjust()) ++run.plan_changes;
  }
  return run;
}

Result<Workload> Session::workload() {
  if (auto done = state_->have_workload(); !done) return done.error();
  return *state_->workload;
}

Result<std::vector<Bytes>> Session::budget() {
  if (auto done = state_->have_workload(); !done) return done.error();
  return state_->budget;
}

}  // namespace terrace

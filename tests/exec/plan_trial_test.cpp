// SPDX-License-Identifier: Apache-2.0
// What a trial decides from made-up times of steps, and what it leaves alone.
#include "exec/plan_trial_rig.hpp"

namespace terrace {
namespace {

TEST(PlanTrial, LeavesWhatIsFasterLeft) {
  const TrialSubject subject;
  PlanTrial trial(subject.request());
  ASSERT_FALSE(trial.done());
  ASSERT_GT(trial.intervals(), 1U);
  EXPECT_EQ(trial.plan()->planner, "sentinel+in_place=off+interval=1+end=wait");
  run(trial, leaving_is_faster);
  EXPECT_EQ(leaving(trial.answer()), static_cast<std::ptrdiff_t>(trial.intervals()));
  EXPECT_EQ(trial.plan()->planner, subject.planner + "+end=" + trial.answer());
  EXPECT_FALSE(trial.remembered());
}

TEST(PlanTrial, WaitsWhereThatIsFaster) {
  const TrialSubject subject;
  PlanTrial trial(subject.request());
  run(trial, waiting_is_faster);
  EXPECT_EQ(trial.answer(), "wait");
  EXPECT_EQ(trial.plan()->planner, "sentinel+in_place=off+interval=1+end=wait");
}

TEST(PlanTrial, KeepsWhatWasPredictedWhereNoAnswerBeatsIt) {
  const TrialSubject subject;
  PlanTrial trial(subject.request());
  run(trial, predicting_is_faster);
  EXPECT_EQ(trial.answer(), "trial");
  EXPECT_EQ(trial.plan()->planner, subject.planner);
  EXPECT_EQ(trial.plan()->instructions, (*subject.predicted)->instructions);
}

/// Waiting and leaving for every interval and the prediction, each with its repeats.
TEST(PlanTrial, CountsItsSteps) {
  const TrialSubject subject;
  PlanTrial trial(subject.request());
  const std::uint32_t expected = trial.steps_left();
  EXPECT_EQ(expected, 2 * (2 * trial.intervals() + 1));
  for (std::uint32_t i = 0; !trial.done(); ++i) {
    EXPECT_EQ(trial.steps(), i);
    EXPECT_LE(trial.steps() + trial.steps_left(), expected);
    trial.observe(Seconds{leaving_is_faster(trial.plan()->planner)});
  }
  EXPECT_LE(trial.steps(), expected);
  EXPECT_EQ(trial.steps_left(), 0U);
  EXPECT_THROW(trial.observe(Seconds{1}), std::logic_error);
}

TEST(PlanTrial, IsNotMisledByTheFirstStepOfAPlan) {
  const TrialSubject subject;
  PlanTrial trial(subject.request());
  bool first = true;
  while (!trial.done()) {
    // Leaving wins by its second steps, and would lose by its first.
    const double time = leaving_is_faster(trial.plan()->planner);
    const bool changed = trial.observe(Seconds{first ? 50 * time : time});
    first = changed;
  }
  EXPECT_EQ(leaving(trial.answer()), static_cast<std::ptrdiff_t>(trial.intervals()));
}

TEST(PlanTrial, TriesNoMoreIntervalsThanItIsToldThoseThatWaitLongest) {
  const TrialSubject subject;
  const PlanTrial all(subject.request());
  PlanTrialOptions options;
  options.intervals = 1;
  PlanTrial one(subject.request(), options);
  EXPECT_GT(all.intervals(), 1U);
  EXPECT_EQ(one.intervals(), 1U);
  options.share = 1;
  EXPECT_TRUE(PlanTrial(subject.request(), options).done()) << "nothing waits for a whole step";
}

void expect_nothing_to_try(const TrialSubject& subject) {
  const PlanTrial trial(subject.request());
  EXPECT_TRUE(trial.done());
  EXPECT_FALSE(trial.remembered());
  EXPECT_EQ(trial.steps(), 0U);
  EXPECT_EQ(trial.plan().plan(), subject.predicted->plan());
}

TEST(PlanTrial, SpendsNoStepWhereKernelsCannotUseSlowerTiers) {
  expect_nothing_to_try(TrialSubject(late_machine(false)));
}

TEST(PlanTrial, SpendsNoStepForAnAnswerThatIsGivenNorForOtherPlanners) {
  for (const char* planner : {"sentinel+in_place=off+interval=1+end=wait",
                              "sentinel+end=trial+in_place=off+interval=1", "prefetch", "best"}) {
    SCOPED_TRACE(planner);
    expect_nothing_to_try(TrialSubject(late_machine(), planner));
  }
}

/// What cannot be left is not tried: here all that moves is on a disk, beside memory too small for it.
TEST(PlanTrial, SpendsNoStepWhereBothAnswersAreOne) {
  Machine machine = late_machine();
  machine.tiers.push_back(late_machine(false).tiers[1]);
  machine.tiers[1].capacity = Bytes{512};
  machine.tiers[2].name = "disk";
  for (Link link : late_machine().links) {
    for (TierId* end : {&link.from, &link.to}) {
      if (end->index == 1) end->index = 2;
    }
    machine.links.push_back(link);
  }
  ASSERT_TRUE(validate(machine));
  expect_nothing_to_try(TrialSubject(machine));
}

TEST(PlanTrial, IsNotBegunWhereTrainingEndsBeforeIt) {
  const TrialSubject subject;
  PlanTrial::Request request = subject.request();
  const std::uint32_t needed = PlanTrial(request).steps_left();
  request.steps = needed;
  EXPECT_FALSE(PlanTrial(request).done());
  request.steps = needed - 1;
  const PlanTrial trial(request);
  EXPECT_TRUE(trial.done());
  EXPECT_EQ(trial.plan().plan(), subject.predicted->plan());
  EXPECT_NE(trial.note().find("stay as predicted: to try them takes up to"), std::string::npos);
}

/// Opens no more than so much of the slow tier.
TrainerOptions with_at_most(Bytes slow) {
  return {.seed = 1, .open = [slow](const TierSpec& spec) -> Result<std::unique_ptr<Tier>> {
            if (spec.kind == TierKind::fake && spec.capacity > slow)
              return Error{ErrorCode::too_large, "there is not so much"};
            return open_tier(spec);
          }};
}

TEST(PlanTrial, IsGivenUpWhereOnlyThePlanHasRoom) {
  const TrialSubject subject;
  PlanTrial trial(subject.request());
  ASSERT_FALSE(trial.done());
  const Bytes enough = round_up((*subject.predicted)->budget[1], Bytes{512});
  ASSERT_LT(enough, trial.plan()->budget[1]);
  Trainer trainer = start_on_trial(trial, subject.program, subject.machine, with_at_most(enough)).value();
  EXPECT_TRUE(trial.done());
  EXPECT_EQ(trial.answer(), "trial");
  EXPECT_EQ(trial.plan().plan(), subject.predicted->plan());
  EXPECT_NE(trial.note().find("stay as predicted, since there is no room to try them: there is not so much"),
            std::string::npos)
      << trial.note();
  Trainer reference = Trainer::start(subject.program, {.seed = 1}).value();
  EXPECT_EQ(step(trainer, 0), step(reference, 0));
}

TEST(PlanTrial, IsBegunWhereThereIsRoomForIt) {
  const TrialSubject subject;
  PlanTrial trial(subject.request());
  const auto options = with_at_most(trial.plan()->budget[1]);
  EXPECT_TRUE(start_on_trial(trial, subject.program, subject.machine, options));
  EXPECT_FALSE(trial.done());
  EXPECT_EQ(trial.note(), "");
}

TEST(PlanTrial, IsNoWayToStartWhereThePlanHasNoRoomEither) {
  const TrialSubject subject;
  PlanTrial trial(subject.request());
  const auto started = start_on_trial(trial, subject.program, subject.machine, with_at_most(Bytes{512}));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "there is not so much");
}

TEST(PlanTrial, ChangesNoBitOfTraining) {
  const TemporaryFolder folder;
  const TrialSubject subject;
  PlanTrial trial(subject.request());
  Trainer trainer = Trainer::start(subject.program, trial.plan(), subject.machine, {.seed = 1}).value();
  Trainer reference = Trainer::start(subject.program, {.seed = 1}).value();
  std::uint64_t at = 0;
  while (!trial.done()) {
    EXPECT_EQ(step(trainer, at), step(reference, at)) << trial.plan()->planner;
    if (trial.observe(Seconds{leaving_is_faster(trial.plan()->planner)}))
      trainer.change_plan(trial.plan(), subject.machine, folder / ".").value();
    ++at;
  }
  EXPECT_EQ(trainer.steps_done(), trial.steps());
  EXPECT_EQ(step(trainer, at), step(reference, at));
  expect_same_state(trainer, reference);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// What a trial decided is kept for the next run, and nothing else is taken for it.
#include "exec/plan_trial_rig.hpp"
#include "profile/database.hpp"

namespace terrace {
namespace {

TEST(PlanTrial, IsRememberedByTheNextRun) {
  const TrialSubject subject;
  for (const auto& time : {leaving_is_faster, waiting_is_faster, predicting_is_faster}) {
    const TemporaryFolder folder;
    PlanTrial trial(subject.request(folder / "store"));
    run(trial, time);
    EXPECT_EQ(trial.note(), "");
    const PlanTrial next(subject.request(folder / "store"));
    EXPECT_TRUE(next.done());
    EXPECT_TRUE(next.remembered());
    EXPECT_EQ(next.steps(), 0U);
    EXPECT_EQ(next.answer(), trial.answer());
    EXPECT_EQ(next.plan()->planner, trial.plan()->planner);
    for (std::size_t i = 0; i < subject.budget.size(); ++i)
      EXPECT_LE(next.plan()->budget[i], trial.plan()->budget[i]) << "no more is taken than is used";
  }
}

TEST(PlanTrial, IsRememberedForTheSameQuestionOnly) {
  const TemporaryFolder folder;
  const auto store = folder / "store";
  const TrialSubject subject;
  PlanTrial trial(subject.request(store));
  run(trial, leaving_is_faster);
  const auto expect_new = [&](const TrialSubject& other, const char* what) {
    const PlanTrial again(other.request(store));
    EXPECT_FALSE(again.remembered()) << what;
  };
  expect_new(TrialSubject(late_machine(), subject.planner, small_resnet(), 7), "another budget");
  expect_new(TrialSubject(late_machine(), subject.planner, small_resnet(8)), "another graph");
  expect_new(TrialSubject(late_machine(), subject.planner + "+grouping=off"), "other options");
  Machine other = late_machine();
  other.tiers[1].spec = "emulated:1GiB,read=20GB/s,write=10GB/s,latency=100ns";
  expect_new(TrialSubject(other), "another tier");
  PlanTrial::Request elsewhere = subject.request(store);
  elsewhere.compute = "another processor";
  EXPECT_FALSE(PlanTrial(elsewhere).remembered());
  EXPECT_TRUE(PlanTrial(subject.request(store)).remembered());
}

/// Its figures are a little different then, and the same steps are the same.
TEST(PlanTrial, IsRememberedWhenTheMachineIsCalibratedAgain) {
  const TemporaryFolder folder;
  const TrialSubject subject;
  PlanTrial trial(subject.request(folder / "store"));
  run(trial, leaving_is_faster);
  Machine again = late_machine();
  for (Link& link : again.links) link.rates[0].rate.value *= 1.001;
  ASSERT_NE(fingerprint(again), fingerprint(subject.machine));
  EXPECT_TRUE(PlanTrial(TrialSubject(again).request(folder / "store")).remembered());
}

TEST(PlanTrial, IsMadeAnewWhereWhatIsRememberedMakesNoPlan) {
  const TemporaryFolder folder;
  const TrialSubject subject;
  PlanTrial trial(subject.request(folder / "store"));
  run(trial, leaving_is_faster);
  {
    auto store = Database(folder / "store");
    store.execute("UPDATE decision SET answer = 'perhaps'");
  }
  const PlanTrial next(subject.request(folder / "store"));
  EXPECT_FALSE(next.remembered());
  EXPECT_FALSE(next.done());
}

TEST(PlanTrial, GoesOnWhereItCannotBeKeptAndSaysSo) {
  const TemporaryFolder folder;
  const TrialSubject subject;
  PlanTrial trial(subject.request(folder / "."));
  EXPECT_FALSE(trial.done());
  run(trial, leaving_is_faster);
  EXPECT_GT(leaving(trial.answer()), 0);
  EXPECT_NE(trial.note().find("the next run has to try again: "), std::string::npos) << trial.note();
  EXPECT_NE(trial.note().find("is a folder"), std::string::npos) << trial.note();
}

}  // namespace
}  // namespace terrace

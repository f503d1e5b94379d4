// SPDX-License-Identifier: Apache-2.0
// From a graph to training in little memory through the public session alone.
#include "terrace/session.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "exec/planned.hpp"
#include "terrace/machine_file.hpp"

namespace terrace {
namespace {

/// A cache folder of its own, and a machine with made-up figures, so that nothing is calibrated.
class SessionOf : public testing::Test {
 protected:
  SessionOf() {
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    Machine machine = two_tiers("fake:1MiB,blocks", {64}, {512}, false);
    machine.compute.name = "this";
    write_machine(machine, folder_ / "machine.json");
  }
  ~SessionOf() override { unsetenv("XDG_CACHE_HOME"); }

  SessionOptions options(std::string fast = "60%") const {
    SessionOptions options;
    options.fast = std::move(fast);
    options.planner = "prefetch";
    options.machine = folder_ / "machine.json";
    options.threads = 1;
    options.trainer = {.seed = 1};
    options.adjust = false;
    return options;
  }

  TemporaryFolder folder_;
};

void fill(std::uint64_t step, Trainer& trainer) { fill_inputs(trainer, step); }

/// What a failed call says: one sentence, without an end of line.
template <class T>
std::string sentence(const Result<T>& result) {
  EXPECT_FALSE(result.ok());
  if (result.ok()) return "";
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
  return result.error().message;
}

TEST_F(SessionOf, ASmallNetworkTrainsInLittleMemoryWithTheSameBits) {
  Session limited(small_resnet(), options()), unlimited(small_resnet(), options(""));
  const TrainingRun little = limited.train(3, fill).value(), all = unlimited.train(3, fill).value();
  EXPECT_EQ(little.loss, all.loss);
  ASSERT_EQ(little.steps(), 3U);
  EXPECT_FALSE(little.stopped);
  expect_same_state(limited.trainer(), unlimited.trainer());
  EXPECT_LE(little.peak[0], limited.budget().value()[0]);
  EXPECT_LT(limited.budget().value()[0], limited.workload().value().peak);
}

TEST_F(SessionOf, AStageDoesTheStagesBeforeItOnce) {
  auto asked = options();
  std::vector<SessionStage> stages;
  asked.progress = [&](const SessionProgress& now) {
    EXPECT_FALSE(now.text.empty());
    if (stages.empty() || stages.back() != now.stage) stages.push_back(now.stage);
  };
  Session session(small_resnet(), asked);
  const VerifiedPlan proven = session.verify().value();
  EXPECT_EQ(session.plan().value(), proven.plan());
  EXPECT_EQ(session.profile().value().kernels.size(), session.workload().value().graph().kernels.size());
  EXPECT_EQ(session.calibrate().value().tiers.size(), 2U);
  EXPECT_EQ(stages, (std::vector{SessionStage::calibrate, SessionStage::compile, SessionStage::profile,
                                 SessionStage::plan, SessionStage::verify}));
  ASSERT_TRUE(session.train(1, fill));
  EXPECT_EQ(stages.back(), SessionStage::train);
  EXPECT_EQ(stages.size(), 6U) << "training repeats no stage";
}

TEST_F(SessionOf, AStopBetweenStepsKeepsTheStateForTheNextCall) {
  std::stop_source stop;
  auto asked = options();
  asked.stop = stop.get_token();
  Session stopped(small_resnet(), asked), undisturbed(small_resnet(), options());
  const auto until_second = [&](std::uint64_t step, Trainer& trainer) {
    if (step == 1) stop.request_stop();
    fill(step, trainer);
  };
  const TrainingRun run = stopped.train(5, until_second).value();
  EXPECT_TRUE(run.stopped);
  EXPECT_EQ(run.steps(), 2U) << "the step that has begun is finished";
  ASSERT_TRUE(undisturbed.train(2, fill));
  expect_same_state(stopped.trainer(), undisturbed.trainer());
  EXPECT_EQ(stopped.trainer().steps_done(), 2U);
  const TrainingRun none = stopped.train(5, fill).value();
  EXPECT_TRUE(none.stopped);
  EXPECT_EQ(none.steps(), 0U);
}

TEST_F(SessionOf, AStopFromAnotherThreadEndsTraining) {
  std::stop_source stop;
  auto asked = options();
  asked.stop = stop.get_token();
  Session session(small_resnet(), asked);
  ASSERT_TRUE(session.start());
  std::thread other([&] { stop.request_stop(); });
  // Far more steps than any computer does before the other thread runs.
  const TrainingRun run = session.train(1'000'000'000, fill).value();
  other.join();
  EXPECT_TRUE(run.stopped);
  EXPECT_EQ(session.trainer().steps_done(), run.steps());
}

TEST_F(SessionOf, AStopWhileKernelsAreMeasuredFailsWithThatStage) {
  std::stop_source stop;
  auto asked = options();
  asked.stop = stop.get_token();
  int measured = 0;
  asked.progress = [&](const SessionProgress& now) {
    if (now.stage == SessionStage::profile && ++measured == 3) stop.request_stop();
  };
  Session session(small_resnet(), asked);
  const auto profile = session.profile();
  EXPECT_NE(sentence(profile).find("`profile`"), std::string::npos);
  EXPECT_EQ(profile.error().code, ErrorCode::stopped);
  EXPECT_EQ(measured, 3);
}

TEST_F(SessionOf, APlanOfSomebodyElseIsProvenAndFollowed) {
  Session session(small_resnet(), options()), ours(small_resnet(), options());
  const Workload workload = session.workload().value();
  ASSERT_TRUE(session.verify(spill_plan(workload.graph(), workload.machine)));
  EXPECT_EQ(session.train(2, fill).value().loss, ours.train(2, fill).value().loss);
}

TEST_F(SessionOf, APlanThatTakesMoreThanTheBudgetIsRefused) {
  Session session(small_resnet(), options());
  Plan plan = session.plan().value();
  plan.budget[0] = session.budget().value()[0] + Bytes{4096};
  EXPECT_NE(sentence(session.verify(plan)).find("is given"), std::string::npos);
}

TEST_F(SessionOf, AWrongPlanIsRefusedAndChangesNothing) {
  Session session(small_resnet(), options());
  const Plan right = session.plan().value();
  Plan wrong = right;
  wrong.instructions.pop_back();
  wrong.instructions.pop_back();
  EXPECT_FALSE(session.verify(wrong));
  EXPECT_EQ(session.plan().value(), right);
}

TEST_F(SessionOf, AGraphGoesOnFromACheckpoint) {
  Session first(small_resnet(), options()), second(small_resnet(), options(""));
  ASSERT_TRUE(first.train(2, fill));
  first.trainer().save_checkpoint(folder_ / "checkpoint").value();
  ASSERT_TRUE(second.start());
  second.trainer().load_checkpoint(folder_ / "checkpoint").value();
  EXPECT_EQ(first.train(1, fill).value().loss, second.train(1, fill).value().loss);
}

TEST_F(SessionOf, AWrongOptionIsSaidInOneSentenceBeforeAnythingIsMeasured) {
  auto asked = options("much");
  asked.progress = [](const SessionProgress& now) { ADD_FAILURE() << now.text; };
  EXPECT_NE(sentence(Session(small_resnet(), asked).train(1, fill)).find("much"), std::string::npos);
  asked = options();
  asked.planner = "bets";
  EXPECT_NE(sentence(Session(small_resnet(), asked).plan()).find("best"), std::string::npos);
  asked = options();
  asked.machine = folder_ / "no-such.json";
  EXPECT_NE(sentence(Session(small_resnet(), asked).calibrate()).find("no-such.json"), std::string::npos);
}

TEST_F(SessionOf, TooLittleMemoryNamesTheKernelThatNeedsMore) {
  EXPECT_NE(sentence(Session(small_resnet(), options("1KiB")).train(1, fill)).find("are missing"),
            std::string::npos);
}

TEST_F(SessionOf, AMachineOfAPaperIsPlannedForAndNotTrainedOn) {
  auto asked = options("60%");
  asked.machine = "optane-autotm";
  Session session(small_resnet(), asked);
  ASSERT_TRUE(session.verify());
  EXPECT_NE(sentence(session.train(1, fill)).find("not this computer"), std::string::npos);
}

TEST_F(SessionOf, SyntheticInputsAreTheSameForTheSameStep) {
  const Graph graph = small_gpt();
  Session a(graph, options()), b(graph, options(""));
  const FillInputs inputs = synthetic_inputs(graph, 3);
  EXPECT_EQ(a.train(2, inputs).value().loss, b.train(2, inputs).value().loss);
}

}  // namespace
}  // namespace terrace

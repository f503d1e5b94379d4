// SPDX-License-Identifier: Apache-2.0
#include "train/adjuster.hpp"

#include "exec/planned.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

/// A graph that has to move most of what it makes, on a machine of which a plan can be asked.
struct Subject {
  Graph graph = compile(small_resnet(), 1).value().graph;
  Machine machine = declared();
  Profile profile = estimate(graph, machine);
  Plan plan;

  explicit Subject(const char* planner = "prefetch") {
    const LeastBudget least = least_budget(graph, machine);
    plan =
        make_plan(planner, {graph, machine, profile, {least.bytes * 2, machine.tiers[1].capacity}}).value();
  }

  static Machine declared() {
    Machine machine = two_tiers("fake:1GiB", {64}, {512}, false);
    machine.compute = {"declared", 1, 1e9};
    for (Link& link : machine.links) link.rates = {{Bytes{4096}, BytesPerSecond{1e9}}};
    return machine;
  }

  /// A step in which kernels and the links take this many times as long as predicted.
  Timeline step(double kernels, double links) const {
    const Drift drift{kernels, std::vector<double>(machine.links.size(), links)};
    const Machine slow = corrected(machine, drift);
    return simulate(graph, slow, corrected(profile, drift, slow), plan);
  }
};

TEST(Drift, IsOneWhereEverythingHappensAsPredicted) {
  const Subject subject;
  const Timeline predicted = simulate(subject.graph, subject.machine, subject.profile, subject.plan);
  const Drift drift = drift_of(subject.machine, subject.plan, predicted, predicted);
  EXPECT_DOUBLE_EQ(drift.kernels, 1);
  for (const double link : drift.links) EXPECT_DOUBLE_EQ(link, 1);
  EXPECT_DOUBLE_EQ(drift.largest(), 1);
}

TEST(Drift, TellsKernelsFromLinks) {
  const Subject subject;
  const Timeline predicted = simulate(subject.graph, subject.machine, subject.profile, subject.plan);
  const Drift kernels = drift_of(subject.machine, subject.plan, subject.step(3, 1), predicted);
  EXPECT_NEAR(kernels.kernels, 3, 1e-6);
  for (const double link : kernels.links) EXPECT_LE(link, 1 + 1e-9);
  const Drift links = drift_of(subject.machine, subject.plan, subject.step(1, 4), predicted);
  EXPECT_NEAR(links.kernels, 1, 1e-6);
  for (const double link : links.links) EXPECT_NEAR(link, 4, 1);
  EXPECT_NEAR(links.largest(), 4, 1);
}

TEST(Drift, OfSeveralStepsIsTheMedianOfEachFactor) {
  const Drift middle = median_of({{1, {9, 2}}, {5, {1, 3}}, {2, {4, 1}}});
  EXPECT_EQ(middle.kernels, 2);
  EXPECT_EQ(middle.links, (std::vector<double>{4, 2}));
}

TEST(Drift, CorrectsRatesAndTimes) {
  const Subject subject;
  const Drift drift{2, std::vector<double>(subject.machine.links.size(), 4.0)};
  const Machine machine = corrected(subject.machine, drift);
  EXPECT_EQ(machine.links[0].time(Bytes{4096}), subject.machine.links[0].time(Bytes{4096}) * 4);
  const Profile profile = corrected(subject.profile, drift, machine);
  EXPECT_EQ(profile.kernels[0].variants[0][0].cold, subject.profile.kernels[0].variants[0][0].cold * 2);
  EXPECT_EQ(profile.machine, fingerprint(machine));
}

TEST(Adjuster, LeavesThePlanAloneWhileTheMachineIsAsPredicted) {
  const Subject subject;
  Adjuster adjuster(subject.graph, subject.machine, subject.profile, subject.plan,
                    planner_named(subject.plan.planner));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(adjuster.observe(subject.step(1.1, 0.9)));
  EXPECT_EQ(adjuster.machine(), subject.machine);
}

TEST(Adjuster, DoesNotHeedTheFirstStepNorASingleSlowOne) {
  const Subject subject;
  Adjuster adjuster(subject.graph, subject.machine, subject.profile, subject.plan,
                    planner_named(subject.plan.planner));
  for (int i = 0; i < 21; ++i)
    EXPECT_FALSE(adjuster.observe(i % 5 == 0 ? subject.step(9, 9) : subject.step(1, 1)));
  EXPECT_EQ(adjuster.machine(), subject.machine);
}

TEST(Adjuster, CorrectsTheMachineAndAnswersWithAPlanWherePlanningAgainPays) {
  const Subject subject;
  AdjusterOptions options;
  options.gain = -10;  // any plan will do
  Adjuster adjuster(subject.graph, subject.machine, subject.profile, subject.plan,
                    planner_named(subject.plan.planner), options);
  std::optional<Adjustment> better;
  for (std::size_t i = 0; i < 1 + options.steps; ++i) {
    ASSERT_FALSE(better) << i;
    better = adjuster.observe(subject.step(1, 10));
  }
  ASSERT_TRUE(better);
  EXPECT_EQ(better->plan->machine, fingerprint(adjuster.machine()));
  EXPECT_LT(adjuster.machine().links[0].rates[0].rate.value, 0.2e9);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_LE(better->plan->budget[i], subject.plan.budget[i]);
  EXPECT_EQ(better->after, better->plan->prediction.step);
  // From here on this is what is predicted.
  const Timeline as_predicted =
      simulate(subject.graph, adjuster.machine(), corrected(subject.profile, {1, {}}, adjuster.machine()),
               better->plan.plan());
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(adjuster.observe(as_predicted));
}

TEST(Adjuster, KeepsAPlanThatAnotherWouldNotBeat) {
  const Subject subject;
  AdjusterOptions options;
  options.gain = 1;  // nothing takes no time
  Adjuster adjuster(subject.graph, subject.machine, subject.profile, subject.plan,
                    planner_named(subject.plan.planner), options);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(adjuster.observe(subject.step(10, 10)));
  EXPECT_NE(adjuster.machine(), subject.machine) << "it was corrected all the same";
}

/// Some kernels take half as long again and the others so much less that all together take the same:
/// one factor does not show it, and an agent that learns goes on from the step as it was measured.
TEST(Adjuster, CorrectsEachKernelForAPlannerThatLearns) {
  LearnedAgents agents;
  const PlanFunction learned = [&](const PlanRequest& asked) {
    PlanRequest request = asked;
    request.agents = &agents;
    return make_plan("deeptm+episodes=5", request);
  };
  Subject subject;
  const std::vector<Bytes> budget{subject.plan.budget[0], subject.machine.tiers[1].capacity};
  subject.plan = learned({subject.graph, subject.machine, subject.profile, budget, 1}).value();
  subject.plan.budget = budget;  // the next plan may need more than this one
  Timeline measured = simulate(subject.graph, subject.machine, subject.profile, subject.plan);
  // About half of the time is in kernels that take half as long again.
  Seconds slower{0}, others{0};
  std::vector<Interval*> fast;
  for (std::size_t i = 0; i < subject.plan.instructions.size(); ++i) {
    Interval& one = measured.instructions[i];
    if (!std::holds_alternative<terrace::Run>(subject.plan.instructions[i])) continue;
    if (slower <= others) {
      slower += one.length();
      one.end = one.begin + one.length() * 1.5;
    } else {
      others += one.length();
      fast.push_back(&one);
    }
  }
  const double less = 1 - 0.5 * slower / others;
  ASSERT_GT(less, 0);
  for (Interval* one : fast) one->end = one->begin + one->length() * less;

  AdjusterOptions options;
  options.gain = -10;  // any plan will do
  const auto observed = [&](Adjuster adjuster) {
    std::optional<Adjustment> better;
    for (std::size_t i = 0; i < 1 + options.steps; ++i) better = adjuster.observe(measured);
    return better;
  };
  const auto adjuster = [&] {
    return Adjuster(subject.graph, subject.machine, subject.profile, subject.plan, learned, options);
  };
  EXPECT_FALSE(observed(adjuster()));
  options.correction = Correction::each_kernel;
  const auto better = observed(adjuster());
  ASSERT_TRUE(better);
  EXPECT_NE(better->plan->remark.find("with an agent trained before"), std::string::npos)
      << better->plan->remark;
  EXPECT_EQ(adjuster_options("deeptm+copies=sync").correction, Correction::each_kernel);
  EXPECT_EQ(adjuster_options("best").correction, Correction::one_factor);
}

/// Between steps, from any plan to any other.
TEST(ChangePlan, GoesOnWithTheSameBits) {
  const TemporaryFolder folder;
  for (const Graph& graph : {small_gpt(), small_resnet()}) {
    const Program program = compile(graph, 1).value();
    Machine machine = Subject::declared();
    const Profile profile = estimate(program.graph, machine);
    const LeastBudget least = least_budget(program.graph, machine);
    const std::vector<Bytes> budget{least.bytes * 3, round_up(least.bytes * 20, Bytes{4096})};
    const auto plan_by = [&](const char* planner) {
      Plan plan = make_plan(planner, {program.graph, machine, profile, budget}).value();
      plan.budget = budget;  // all may use what is open, whatever they need
      return verify(program.graph, machine, plan).value();
    };
    Trainer trainer = Trainer::start(program, plan_by("lru"), machine, {.seed = 1}).value();
    Trainer reference = Trainer::start(program, {.seed = 1}).value();
    std::uint64_t at = 0;
    for (const char* planner : {"prefetch", "lru", "sentinel", "next-use"}) {
      SCOPED_TRACE(planner);
      EXPECT_EQ(step(trainer, at), step(reference, at));
      for (Link& link : machine.links) link.rates[0].rate.value /= 2;
      ++at;
      trainer.change_plan(plan_by(planner), machine, folder / ".").value();
      expect_same_state(trainer, reference);
      EXPECT_EQ(trainer.steps_done(), at);
    }
    EXPECT_EQ(step(trainer, at), step(reference, at));
    EXPECT_TRUE(std::filesystem::is_empty(folder / "."));
  }
}

TEST(ChangePlan, IsRefusedWhereThePlanDoesNotFit) {
  const TemporaryFolder folder;
  const SlowTier slow = fake_memory();
  const Program program = compile(small_resnet(), 1).value(), other = compile(small_gpt(), 1).value();
  Trainer trainer = start(small_resnet(), slow);
  const auto expect_refusal = [&](const VerifiedPlan& plan, const Machine& machine, const char* reason) {
    const auto changed = trainer.change_plan(plan, machine, folder / ".");
    ASSERT_FALSE(changed);
    EXPECT_NE(changed.error().message.find(reason), std::string::npos) << changed.error().message;
  };
  expect_refusal(plan_for(other, slow), slow.machine, "another graph");
  Machine faster = slow.machine;
  faster.links[0].rates[0].rate.value *= 2;
  expect_refusal(plan_for(program, slow), faster, "another machine");
  Plan large = spill_plan(program.graph, slow.machine);
  large.budget[0] = large.budget[0] + Bytes{4096};
  expect_refusal(verify(program.graph, slow.machine, large).value(), slow.machine, "are open");
  EXPECT_FALSE(trainer.change_plan(plan_for(program, slow), slow.machine, folder / "missing"));
  Trainer reference = start_unlimited(small_resnet());
  EXPECT_EQ(step(trainer, 0), step(reference, 0));
}

TEST(ChangePlan, ThatFailsHalfWayLeavesTheStateInAFileAndSaysSo) {
  const TemporaryFolder folder;
  FakeTier* tier = nullptr;
  const SlowTier slow = fake_blocks();
  const Program program = compile(small_resnet(), 1).value();
  Trainer trainer = start(small_resnet(), slow, {.seed = 1, .learning_rate = 0.01F, .open = opening(tier)});
  Trainer reference = start_unlimited(small_resnet());
  step(trainer, 0);
  step(reference, 0);
  tier->fail(3, FakeTier::Fault::io_error, Access::write);
  std::string message;
  try {
    (void)trainer.change_plan(plan_for(program, slow), slow.machine, folder / ".");
  } catch (const EnvironmentError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find(".terrace-state-"), std::string::npos) << message;
  EXPECT_TRUE(trainer.failed());
  EXPECT_THROW(step(trainer, 1), EnvironmentError);
  std::filesystem::path left;
  for (const auto& entry : std::filesystem::directory_iterator(folder / ".")) left = entry.path();
  trainer.load_checkpoint(left).value();
  EXPECT_EQ(step(trainer, 1), step(reference, 1));
  expect_same_state(trainer, reference);
}

}  // namespace
}  // namespace terrace

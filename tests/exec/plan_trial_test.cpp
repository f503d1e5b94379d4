// What a trial decides from made-up times of steps, and what it leaves alone.
#include "exec/plan_trial.hpp"

#include <algorithm>
#include <functional>

#include "exec/planned.hpp"
#include "plan/reach.hpp"
#include "profile/database.hpp"
#include "terrace/planner.hpp"

namespace terrace {
namespace {

/// Links so slow that tensors come late, and memory behind them that kernels can use.
Machine late_machine(bool addressable = true) {
  Machine machine = two_tiers(addressable ? "fake:1GiB" : "fake:1GiB,blocks", {64}, {512}, addressable);
  machine.compute = {"declared", 1, 1e9};
  for (Link& link : machine.links) link.rates = {{Bytes{4096}, BytesPerSecond{1e8}}};
  return machine;
}

/// A graph within a budget, and what the planner predicts to be best.
struct Subject {
  Machine machine;
  std::string planner;
  Program program;
  Profile profile;
  std::vector<Bytes> budget;
  std::optional<VerifiedPlan> predicted;

  explicit Subject(Machine on = late_machine(), std::string by = "sentinel+in_place=off+interval=1",
                   const Graph& graph = small_resnet(), std::uint64_t tenths = 6)
      : machine(std::move(on)), planner(std::move(by)), program(compile(graph, 1).value()) {
    profile = estimate(program.graph, machine);
    for (const MachineTier& tier : machine.tiers) budget.push_back(tier.capacity);
    budget[0] = round_up(program.peak * tenths / 10, Bytes{64});
    plan();
  }

  void plan() {
    Plan made = make_plan(planner, {program.graph, machine, profile, budget}).value();
    trim_budget(program.graph, machine, made);
    predicted = verify(program.graph, machine, made).value();
  }

  PlanTrial::Request request(const std::filesystem::path& store = {}) const {
    return {program.graph, machine, profile, budget, planner, *predicted, 1000, "processor", store};
  }
};

/// Made-up seconds of a step under a plan of this name.
using StepTime = std::function<double(const std::string& planner)>;

std::ptrdiff_t leaving(const std::string& planner) {
  const std::size_t list = planner.find("leave:");
  return list == std::string::npos ? 0 : 1 + std::count(planner.begin() + list, planner.end(), ',');
}
bool only_predicts(const std::string& planner) { return planner.find("+end=") == std::string::npos; }

double leaving_is_faster(const std::string& planner) {
  return only_predicts(planner) ? 1000 : 100 - static_cast<double>(leaving(planner));
}
double waiting_is_faster(const std::string& planner) {
  return only_predicts(planner) ? 1000 : 100 + static_cast<double>(leaving(planner));
}
double predicting_is_faster(const std::string& planner) { return only_predicts(planner) ? 1 : 100; }

void run(PlanTrial& trial, const StepTime& time) {
  while (!trial.done()) trial.observe(Seconds{time(trial.plan()->planner)});
}

TEST(PlanTrial, LeavesWhatIsFasterLeft) {
  const Subject subject;
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
  const Subject subject;
  PlanTrial trial(subject.request());
  run(trial, waiting_is_faster);
  EXPECT_EQ(trial.answer(), "wait");
  EXPECT_EQ(trial.plan()->planner, "sentinel+in_place=off+interval=1+end=wait");
}

TEST(PlanTrial, KeepsWhatWasPredictedWhereNoAnswerBeatsIt) {
  const Subject subject;
  PlanTrial trial(subject.request());
  run(trial, predicting_is_faster);
  EXPECT_EQ(trial.answer(), "trial");
  EXPECT_EQ(trial.plan()->planner, subject.planner);
  EXPECT_EQ(trial.plan()->instructions, (*subject.predicted)->instructions);
}

/// Waiting and leaving for every interval and the prediction, each with its repeats.
TEST(PlanTrial, CountsItsSteps) {
  const Subject subject;
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
  const Subject subject;
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
  const Subject subject;
  const PlanTrial all(subject.request());
  PlanTrialOptions options;
  options.intervals = 1;
  PlanTrial one(subject.request(), options);
  EXPECT_GT(all.intervals(), 1U);
  EXPECT_EQ(one.intervals(), 1U);
  options.share = 1;
  EXPECT_TRUE(PlanTrial(subject.request(), options).done()) << "nothing waits for a whole step";
}

TEST(PlanTrial, IsRememberedByTheNextRun) {
  const Subject subject;
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
  const Subject subject;
  PlanTrial trial(subject.request(store));
  run(trial, leaving_is_faster);
  const auto expect_new = [&](const Subject& other, const char* what) {
    const PlanTrial again(other.request(store));
    EXPECT_FALSE(again.remembered()) << what;
  };
  expect_new(Subject(late_machine(), subject.planner, small_resnet(), 7), "another budget");
  expect_new(Subject(late_machine(), subject.planner, small_resnet(8)), "another graph");
  expect_new(Subject(late_machine(), subject.planner + "+grouping=off"), "other options");
  Machine other = late_machine();
  other.tiers[1].spec = "emulated:1GiB,read=20GB/s,write=10GB/s,latency=100ns";
  expect_new(Subject(other), "another tier");
  PlanTrial::Request elsewhere = subject.request(store);
  elsewhere.compute = "another processor";
  EXPECT_FALSE(PlanTrial(elsewhere).remembered());
  EXPECT_TRUE(PlanTrial(subject.request(store)).remembered());
}

/// Its figures are a little different then, and the same steps are the same.
TEST(PlanTrial, IsRememberedWhenTheMachineIsCalibratedAgain) {
  const TemporaryFolder folder;
  const Subject subject;
  PlanTrial trial(subject.request(folder / "store"));
  run(trial, leaving_is_faster);
  Machine again = late_machine();
  for (Link& link : again.links) link.rates[0].rate.value *= 1.001;
  ASSERT_NE(fingerprint(again), fingerprint(subject.machine));
  EXPECT_TRUE(PlanTrial(Subject(again).request(folder / "store")).remembered());
}

TEST(PlanTrial, IsMadeAnewWhereWhatIsRememberedMakesNoPlan) {
  const TemporaryFolder folder;
  const Subject subject;
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
  const Subject subject;
  PlanTrial trial(subject.request(folder / "."));
  EXPECT_FALSE(trial.done());
  run(trial, leaving_is_faster);
  EXPECT_GT(leaving(trial.answer()), 0);
  EXPECT_NE(trial.note().find("the next run has to try again: "), std::string::npos) << trial.note();
  EXPECT_NE(trial.note().find("is a folder"), std::string::npos) << trial.note();
}

void expect_nothing_to_try(const Subject& subject) {
  const PlanTrial trial(subject.request());
  EXPECT_TRUE(trial.done());
  EXPECT_FALSE(trial.remembered());
  EXPECT_EQ(trial.steps(), 0U);
  EXPECT_EQ(trial.plan().plan(), subject.predicted->plan());
}

TEST(PlanTrial, SpendsNoStepWhereKernelsCannotUseSlowerTiers) {
  expect_nothing_to_try(Subject(late_machine(false)));
}

TEST(PlanTrial, SpendsNoStepForAnAnswerThatIsGivenNorForOtherPlanners) {
  for (const char* planner : {"sentinel+in_place=off+interval=1+end=wait",
                              "sentinel+end=trial+in_place=off+interval=1", "prefetch", "best"}) {
    SCOPED_TRACE(planner);
    expect_nothing_to_try(Subject(late_machine(), planner));
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
  expect_nothing_to_try(Subject(machine));
}

TEST(PlanTrial, IsNotBegunWhereTrainingEndsBeforeIt) {
  const Subject subject;
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
  const Subject subject;
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
  const Subject subject;
  PlanTrial trial(subject.request());
  const auto options = with_at_most(trial.plan()->budget[1]);
  EXPECT_TRUE(start_on_trial(trial, subject.program, subject.machine, options));
  EXPECT_FALSE(trial.done());
  EXPECT_EQ(trial.note(), "");
}

TEST(PlanTrial, IsNoWayToStartWhereThePlanHasNoRoomEither) {
  const Subject subject;
  PlanTrial trial(subject.request());
  const auto started = start_on_trial(trial, subject.program, subject.machine, with_at_most(Bytes{512}));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "there is not so much");
}

TEST(PlanTrial, ChangesNoBitOfTraining) {
  const TemporaryFolder folder;
  const Subject subject;
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

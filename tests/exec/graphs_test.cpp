// SPDX-License-Identifier: Apache-2.0
// A trainer that changes between graphs of one network.
#include <algorithm>

#include "exec/planned.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

/// Graphs of one network, the largest first.
using Family = std::vector<Program>;

Family family_of(Graph (*graph)(std::int64_t), const std::vector<std::int64_t>& sequences) {
  Family family;
  for (const std::int64_t sequence : sequences) family.push_back(compile(graph(sequence), 1).value());
  return family;
}

/// Compiling takes longer than the tests do.
const Family& gpts() {
  static const Family family = family_of(small_gpt, {12, 5, 8});
  return family;
}
const Family& lstms() {
  static const Family family = family_of(small_lstm, {7, 2, 4});
  return family;
}

/// Plans that fit in the same tiers.
std::vector<VerifiedPlan> plans_for(const Family& programs, const SlowTier& slow) {
  std::vector<Plan> plans;
  std::vector<Bytes> budget(slow.machine.tiers.size());
  for (const Program& program : programs) {
    plans.push_back(spill_plan(program.graph, slow.machine, slow.options));
    for (std::size_t i = 0; i < budget.size(); ++i) budget[i] = std::max(budget[i], plans.back().budget[i]);
  }
  std::vector<VerifiedPlan> verified;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    plans[i].budget = budget;
    verified.push_back(verify(programs[i].graph, slow.machine, plans[i]).value());
  }
  return verified;
}

Trainer start_all(const Family& family, const SlowTier& slow, TrainerOptions options = {}) {
  options.seed = 1;
  const auto plans = plans_for(family, slow);
  Trainer trainer = Trainer::start(family[0], plans[0], slow.machine, options).value();
  for (std::size_t i = 1; i < family.size(); ++i)
    EXPECT_EQ(trainer.add_graph(family[i], plans[i], slow.machine).value(), i);
  return trainer;
}

Trainer start_all_unlimited(const Family& family) {
  Trainer trainer = Trainer::start(family[0], {.seed = 1}).value();
  for (std::size_t i = 1; i < family.size(); ++i) EXPECT_EQ(trainer.add_graph(family[i]).value(), i);
  return trainer;
}

/// Losses, and the state in the end.
struct Outcome {
  std::vector<float> losses;
  std::vector<std::vector<float>> state;
  bool operator==(const Outcome&) const = default;
};

/// Changes graphs by starting anew: as many steps of any kind, then every tensor from the one before.
Outcome by_starting_anew(const Family& family, const std::vector<std::size_t>& numbers) {
  Outcome outcome;
  std::unique_ptr<Trainer> trainer;
  for (std::uint64_t i = 0; i < numbers.size(); ++i) {
    auto next = std::make_unique<Trainer>(Trainer::start(family[numbers[i]], {.seed = 1}).value());
    for (std::uint64_t done = 0; done < i; ++done) step(*next, 99);
    for (const Tensor& tensor : next->program().graph.tensors) {
      if (trainer && tensor.persistent && tensor.type == DataType::f32)
        next->write(tensor.name, trainer->read(tensor.name));
    }
    trainer = std::move(next);
    outcome.losses.push_back(step(*trainer, i));
  }
  outcome.state = state_of(*trainer);
  return outcome;
}

Outcome by_changing(Trainer& trainer, const std::vector<std::size_t>& numbers) {
  Outcome outcome;
  for (std::uint64_t i = 0; i < numbers.size(); ++i) {
    trainer.use_graph(numbers[i]);
    outcome.losses.push_back(step(trainer, i));
    EXPECT_EQ(trainer.steps_done(), i + 1);
  }
  outcome.state = state_of(trainer);
  return outcome;
}

std::vector<std::size_t> random_numbers(std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<std::size_t> numbers(10);
  for (std::size_t& number : numbers) number = random.below(3);
  return numbers;
}

TEST(TrainerGraphs, KeepTheStateToTheBit) {
  const TemporaryFolder folder;
  for (const Family* family : {&gpts(), &lstms()}) {
    SCOPED_TRACE(family->front().graph.name);
    const auto numbers = random_numbers(3);
    const Outcome expected = by_starting_anew(*family, numbers);
    Trainer unlimited = start_all_unlimited(*family);
    EXPECT_TRUE(by_changing(unlimited, numbers) == expected);
    for (const SlowTier& slow : slow_tiers(folder)) {
      Trainer trainer = start_all(*family, slow);
      EXPECT_TRUE(by_changing(trainer, numbers) == expected) << slow.name;
    }
  }
}

TEST(TrainerGraphs, AreShownByNumber) {
  Trainer trainer = start_all_unlimited(gpts());
  trainer.use_graph(2);
  EXPECT_EQ(fingerprint(trainer.program().graph), fingerprint(trainer.program(2).graph));
  EXPECT_EQ(trainer.integer_input("tokens").size(), 16U);
  EXPECT_THROW(trainer.use_graph(3), std::logic_error);
}

// ---- Refusals

void expect_refusal(const Result<std::size_t>& added, std::initializer_list<const char*> words) {
  ASSERT_FALSE(added);
  for (const char* word : words)
    EXPECT_NE(added.error().message.find(word), std::string::npos) << added.error().message;
}

Graph gpt_of(std::int64_t hidden, const Optimizer& optimizer) {
  Net net("small gpt");
  const Value tokens = net.input("tokens", {2, 4}, DataType::i32);
  const Value target = net.input("target", {2, 4}, DataType::i32);
  const networks::GptOptions options{
      .vocabulary = 10, .positions = 12, .hidden = hidden, .layers = 2, .heads = 3, .dropout = 0.2F};
  net.train(net.cross_entropy(networks::gpt(net, tokens, options), target), optimizer);
  return std::move(net).finish();
}

TEST(TrainerGraphs, OfAnotherStateAreRefusedAndTheTensorNamed) {
  Trainer trainer = start_unlimited(small_gpt());
  const Optimizer adam{.kind = Optimizer::Kind::adam};
  const auto add = [&](const Graph& graph) { return trainer.add_graph(compile(graph, 1).value()); };
  expect_refusal(
      add(gpt_of(27, adam)),
      {"tensor wte.weight of small gpt is a weight of f32 [10, 27], and a weight of f32 [10, 24] in"});
  expect_refusal(add(gpt_of(24, {.momentum = 0})), {" of the graph that is trained is not in small gpt"});
  expect_refusal(add(small_resnet(1)), {"of small resnet is not in the graph that is trained"});
  Trainer reference = start_unlimited(small_gpt());
  EXPECT_EQ(step(trainer, 0), step(reference, 0));
}

TEST(TrainerGraphs, ThatDoNotFitAreRefused) {
  const SlowTier slow = fake_memory();
  Trainer trainer = start(small_gpt(5), slow);
  const Program longer = compile(small_gpt(12), 1).value();
  expect_refusal(trainer.add_graph(longer, plan_for(longer, slow), slow.machine), {"are open"});
  expect_refusal(trainer.add_graph(compile(small_gpt(4), 1).value(), plan_for(longer, slow), slow.machine),
                 {"another graph"});
  expect_refusal(trainer.add_graph(compile(small_gpt(4), 2).value()), {"2 threads and training has 1"});
  Trainer memory = start_unlimited(small_gpt(5));
  expect_refusal(memory.add_graph(longer), {"are open"});
}

// ---- Failures and checkpoints

TEST(TrainerGraphs, ThatFailToTakeOverLoseNothing) {
  const Outcome expected = by_starting_anew(gpts(), {0, 1, 1});
  int failures = 0;
  for (const Access access : {Access::read, Access::write}) {
    for (const std::uint64_t nth : {1, 6, 15}) {
      SCOPED_TRACE(nth);
      FakeTier* tier = nullptr;
      Trainer trainer = start_all(gpts(), fake_blocks(), {.open = opening(tier)});
      Outcome outcome{{step(trainer, 0)}, {}};
      tier->fail(nth, FakeTier::Fault::no_space, access);
      try {
        trainer.use_graph(1);
      } catch (const EnvironmentError& error) {
        ++failures;
        EXPECT_EQ(error.place().cause, ENOSPC);
        EXPECT_TRUE(trainer.failed());
        EXPECT_THROW(step(trainer, 1), EnvironmentError);
        EXPECT_THROW(trainer.read("ln_f.weight"), EnvironmentError);
        EXPECT_THROW(trainer.use_graph(2), std::logic_error);
        trainer.use_graph(1);
      }
      EXPECT_FALSE(trainer.failed());
      tier->heal();
      for (std::uint64_t i = 1; i < 3; ++i) outcome.losses.push_back(step(trainer, i));
      outcome.state = state_of(trainer);
      EXPECT_TRUE(outcome == expected);
    }
  }
  EXPECT_GT(failures, 3);
}

TEST(TrainerGraphs, WaitForACheckpointThatIsWritten) {
  const TemporaryFolder folder;
  Trainer trainer = start_all(gpts(), fake_blocks()), reference = start_all(gpts(), fake_blocks());
  step(trainer, 0);
  step(reference, 0);
  trainer.start_checkpoint(folder / "kept").value();
  trainer.use_graph(1);
  step(trainer, 1);
  trainer.finish_checkpoint().value();
  Trainer resumed = start_all(gpts(), fake_blocks());
  resumed.load_checkpoint(folder / "kept").value();
  expect_same_state(resumed, reference);
}

TEST(TrainerGraphs, HaveCheckpointsOfTheirOwn) {
  const TemporaryFolder folder;
  Trainer trainer = start_all(lstms(), fake_blocks());
  step(trainer, 0);
  trainer.use_graph(1);
  step(trainer, 1);
  trainer.save_checkpoint(folder / "kept").value();
  Trainer resumed = start_all(lstms(), fake_blocks());
  EXPECT_FALSE(resumed.load_checkpoint(folder / "kept"));
  resumed.use_graph(1);
  resumed.load_checkpoint(folder / "kept").value();
  for (Trainer* each : {&trainer, &resumed}) each->use_graph(2);
  EXPECT_EQ(step(resumed, 2), step(trainer, 2));
  expect_same_state(resumed, trainer);
}

TEST(TrainerGraphs, LetACheckpointEndAFailedChange) {
  const TemporaryFolder folder;
  FakeTier* tier = nullptr;
  Trainer trainer = start_all(lstms(), fake_blocks(), {.open = opening(tier)});
  trainer.use_graph(1);
  trainer.save_checkpoint(folder / "kept").value();
  trainer.use_graph(0);
  tier->fail(1, FakeTier::Fault::io_error, Access::write);
  EXPECT_THROW(trainer.use_graph(1), EnvironmentError);
  tier->heal();
  trainer.load_checkpoint(folder / "kept").value();
  trainer.use_graph(0);
  Trainer reference = start_all(lstms(), fake_blocks());
  EXPECT_EQ(step(trainer, 0), step(reference, 0));
}

}  // namespace
}  // namespace terrace

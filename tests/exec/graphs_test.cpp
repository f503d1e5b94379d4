// A trainer that changes between graphs of one network.
#include <algorithm>
#include <functional>

#include "exec/planned.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

struct Family {
  std::function<Graph(std::int64_t)> graph;
  std::vector<std::int64_t> sequences;
};

std::vector<Family> families() {
  return {{[](std::int64_t n) { return small_gpt(n); }, {12, 5, 8}},
          {[](std::int64_t n) { return small_lstm(n); }, {7, 2, 4}}};
}

/// Plans that fit in the same tiers.
std::vector<VerifiedPlan> plans_for(const std::vector<Program>& programs, const SlowTier& slow) {
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

std::vector<Program> programs_of(const Family& family) {
  std::vector<Program> programs;
  for (const std::int64_t sequence : family.sequences)
    programs.push_back(compile(family.graph(sequence), 1).value());
  return programs;
}

/// Its graph `i` is that of the family's sequence `i`.
Trainer start_all(const Family& family, const SlowTier& slow, TrainerOptions options = {}) {
  options.seed = 1;
  const auto programs = programs_of(family);
  const auto plans = plans_for(programs, slow);
  Trainer trainer = Trainer::start(programs[0], plans[0], slow.machine, options).value();
  for (std::size_t i = 1; i < programs.size(); ++i)
    EXPECT_EQ(trainer.add_graph(programs[i], plans[i], slow.machine).value(), i);
  return trainer;
}

Trainer start_all_unlimited(const Family& family) {
  const auto programs = programs_of(family);
  Trainer trainer = Trainer::start(programs[0], {.seed = 1}).value();
  for (std::size_t i = 1; i < programs.size(); ++i) EXPECT_EQ(trainer.add_graph(programs[i]).value(), i);
  return trainer;
}

/// Changes graphs by starting anew: as many steps of any kind, then every tensor from the one before.
class Reference {
 public:
  explicit Reference(const Family& family) : family_(family) {
    trainer_ = std::make_unique<Trainer>(fresh(0));
  }
  void use(std::size_t number) {
    Trainer next = fresh(number);
    for (std::uint64_t i = 0; i < trainer_->steps_done(); ++i) step(next, 99);
    for (const Tensor& tensor : next.program().graph.tensors) {
      if (tensor.persistent && tensor.type == DataType::f32)
        next.write(tensor.name, trainer_->read(tensor.name));
    }
    trainer_ = std::make_unique<Trainer>(std::move(next));
  }
  Trainer& trainer() { return *trainer_; }

 private:
  Trainer fresh(std::size_t number) const {
    return Trainer::start(compile(family_.graph(family_.sequences[number]), 1).value(), {.seed = 1}).value();
  }
  const Family& family_;
  std::unique_ptr<Trainer> trainer_;
};

/// Random changes and steps; both must agree all along.
void expect_like_the_reference(Trainer& trainer, const Family& family, std::uint64_t seed) {
  Reference reference(family);
  SplitMix random(seed);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const std::size_t number = random.below(family.sequences.size());
    trainer.use_graph(number);
    reference.use(number);
    EXPECT_EQ(step(trainer, i), step(reference.trainer(), i)) << i;
    EXPECT_EQ(trainer.steps_done(), i + 1);
  }
  expect_same_state(trainer, reference.trainer());
}

TEST(TrainerGraphs, KeepTheStateToTheBitInAllTiers) {
  const TemporaryFolder folder;
  for (const Family& family : families()) {
    for (const SlowTier& slow : slow_tiers(folder)) {
      SCOPED_TRACE(family.graph(2).name + " over " + slow.name);
      Trainer trainer = start_all(family, slow);
      expect_like_the_reference(trainer, family, 3);
    }
  }
}

TEST(TrainerGraphs, KeepTheStateToTheBitInOneMemory) {
  for (const Family& family : families()) {
    Trainer trainer = start_all_unlimited(family);
    expect_like_the_reference(trainer, family, 4);
  }
}

TEST(TrainerGraphs, AreShownByNumber) {
  const Family family = families()[0];
  Trainer trainer = start_all_unlimited(family);
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
  const Family family = families()[0];
  int failures = 0;
  for (const Access access : {Access::read, Access::write}) {
    for (std::uint64_t nth = 1; nth < 40; nth += 6) {
      SCOPED_TRACE(nth);
      FakeTier* tier = nullptr;
      Trainer trainer = start_all(family, fake_blocks(), {.open = opening(tier)});
      Reference reference(family);
      EXPECT_EQ(step(trainer, 0), step(reference.trainer(), 0));
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
      reference.use(1);
      EXPECT_EQ(step(trainer, 1), step(reference.trainer(), 1));
      expect_same_state(trainer, reference.trainer());
    }
  }
  EXPECT_GT(failures, 3);
}

TEST(TrainerGraphs, WaitForACheckpointThatIsWritten) {
  const TemporaryFolder folder;
  const Family family = families()[0];
  Trainer trainer = start_all(family, fake_blocks()), reference = start_all(family, fake_blocks());
  step(trainer, 0);
  step(reference, 0);
  trainer.start_checkpoint(folder / "kept").value();
  trainer.use_graph(1);
  step(trainer, 1);
  trainer.finish_checkpoint().value();
  Trainer resumed = start_all(family, fake_blocks());
  resumed.load_checkpoint(folder / "kept").value();
  expect_same_state(resumed, reference);
}

TEST(TrainerGraphs, HaveCheckpointsOfTheirOwn) {
  const TemporaryFolder folder;
  const Family family = families()[1];
  Trainer trainer = start_all(family, fake_blocks());
  step(trainer, 0);
  trainer.use_graph(1);
  step(trainer, 1);
  trainer.save_checkpoint(folder / "kept").value();
  Trainer resumed = start_all(family, fake_blocks());
  EXPECT_FALSE(resumed.load_checkpoint(folder / "kept"));
  resumed.use_graph(1);
  resumed.load_checkpoint(folder / "kept").value();
  for (Trainer* each : {&trainer, &resumed}) each->use_graph(2);
  EXPECT_EQ(step(resumed, 2), step(trainer, 2));
  expect_same_state(resumed, trainer);
}

TEST(TrainerGraphs, LetACheckpointEndAFailedChange) {
  const TemporaryFolder folder;
  const Family family = families()[1];
  FakeTier* tier = nullptr;
  Trainer trainer = start_all(family, fake_blocks(), {.open = opening(tier)});
  trainer.use_graph(1);
  trainer.save_checkpoint(folder / "kept").value();
  trainer.use_graph(0);
  tier->fail(1, FakeTier::Fault::io_error, Access::write);
  EXPECT_THROW(trainer.use_graph(1), EnvironmentError);
  tier->heal();
  trainer.load_checkpoint(folder / "kept").value();
  trainer.use_graph(0);
  Trainer reference = start_all(family, fake_blocks());
  EXPECT_EQ(step(trainer, 0), step(reference, 0));
}

}  // namespace
}  // namespace terrace

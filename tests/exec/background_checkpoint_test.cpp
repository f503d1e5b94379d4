// SPDX-License-Identifier: Apache-2.0
// Checkpoints written behind the steps that follow. The writer is slowed down so that steps overtake it
// wherever nothing holds them back.
#include <unistd.h>

#include <atomic>
#include <thread>

#include "exec/planned.hpp"
#include "terrace/error.hpp"
#include "train/checkpoint_source.hpp"

namespace terrace {
namespace {

constexpr useconds_t kPause = 300;  // of the writer, in microseconds, before each tensor

TrainerOptions with_a_slow_writer() {
  return {.seed = 1, .learning_rate = 0.01F, .before_each_kept = [] { usleep(kPause); }};
}

void expect_the_state_at_its_start(const Graph& graph) {
  const TemporaryFolder folder;
  Trainer begun = start_unlimited(graph), ended = start_unlimited(graph);
  step(begun, 0);
  for (std::uint64_t i = 0; i < 3; ++i) step(ended, i);
  for (const SlowTier& slow : slow_tiers_of_each_sort(folder)) {
    SCOPED_TRACE(graph.name + " over " + slow.name);
    Trainer trainer = start(graph, slow, with_a_slow_writer());
    step(trainer, 0);
    trainer.start_checkpoint(folder / "one").value();
    for (std::uint64_t i = 1; i < 3; ++i) step(trainer, i);
    trainer.finish_checkpoint().value();
    Trainer resumed = start_unlimited(graph);
    resumed.load_checkpoint(folder / "one").value();
    EXPECT_EQ(resumed.steps_done(), 1U);
    expect_same_state(resumed, begun);
    expect_same_state(trainer, ended);
  }
}

TEST(BackgroundCheckpoint, HoldsWhatWasThereWhenItWasStarted) { expect_the_state_at_its_start(small_gpt()); }
TEST(BackgroundCheckpoint, HoldsTheStatisticsThatWereThereWhenItWasStarted) {
  expect_the_state_at_its_start(small_resnet());
}

TEST(BackgroundCheckpoint, IsWrittenBeforeTheNextOneIsStarted) {
  const TemporaryFolder folder;
  Trainer trainer = Trainer::start(compile(small_mobilenet(), 1).value(), with_a_slow_writer()).value();
  trainer.start_checkpoint(folder / "none").value();
  step(trainer, 0);
  trainer.start_checkpoint(folder / "one").value();
  Trainer resumed = start_unlimited(small_mobilenet());
  resumed.load_checkpoint(folder / "none").value();
  expect_same_state(resumed, start_unlimited(small_mobilenet()));
}

/// Whoever writes tensors between steps waits for the checkpoint, whose writer is held until then.
TEST(BackgroundCheckpoint, IsNotDisturbedByWritingATensor) {
  const TemporaryFolder folder;
  std::atomic<bool> held{true};
  TrainerOptions options = with_a_slow_writer();
  options.before_each_kept = [&] { held.wait(true); };
  Trainer trainer = Trainer::start(compile(small_resnet(), 1).value(), options).value();
  const std::vector<float> before = trainer.read("fc.weight");
  trainer.start_checkpoint(folder / "before").value();
  std::thread letting_go([&] {
    usleep(20'000);  // by then the tensor is written, if nothing waits
    held = false;
    held.notify_all();
  });
  trainer.write("fc.weight", std::vector<float>(before.size(), 3.0F));
  letting_go.join();
  trainer.finish_checkpoint().value();
  EXPECT_EQ(trainer.read("fc.weight")[0], 3.0F);
  trainer.load_checkpoint(folder / "before").value();
  EXPECT_EQ(trainer.read("fc.weight"), before);
}

TEST(BackgroundCheckpoint, SurvivesAStepThatFails) {
  const TemporaryFolder folder;
  FakeTier* tier = nullptr;
  TrainerOptions options = with_a_slow_writer();
  std::atomic<bool> waiting{true};
  options.before_each_kept = [&] {
    while (waiting) usleep(kPause);
  };
  options.open = opening(tier);
  Trainer trainer = start(small_resnet(), fake_blocks(), options);
  step(trainer, 0);
  trainer.start_checkpoint(folder / "one").value();
  tier->fail(2, FakeTier::Fault::io_error);
  EXPECT_THROW(step(trainer, 1), EnvironmentError);
  waiting = false;
  trainer.finish_checkpoint().value();
  Trainer reference = start_unlimited(small_resnet());
  step(reference, 0);
  Trainer resumed = start_unlimited(small_resnet());
  resumed.load_checkpoint(folder / "one").value();
  expect_same_state(resumed, reference);
}

TEST(BackgroundCheckpoint, TellsWhatWentWrongOnceAndLetsStepsGoOn) {
  const TemporaryFolder folder;
  Trainer trainer = start(small_resnet(), fake_memory(), with_a_slow_writer());
  trainer.start_checkpoint(folder / "no folder/one").value();
  step(trainer, 0);
  const auto second = trainer.start_checkpoint(folder / "two");
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("does not exist"), std::string::npos) << second.error().message;
  trainer.save_checkpoint(folder / "two").value();
  EXPECT_TRUE(trainer.finish_checkpoint());
}

TEST(BackgroundCheckpoint, IsReadFromTheRegionThatKeepsItsValueLongest) {
  const Program program = compile(small_resnet(), 1).value();
  const SlowTier slow = fake_memory();
  const Plan plan = spill_plan(program.graph, slow.machine);
  const auto kept = kept_tensors(program.graph, plan);
  std::size_t persistent = 0;
  for (const Tensor& tensor : program.graph.tensors) persistent += tensor.persistent ? 1 : 0;
  ASSERT_EQ(kept.size(), persistent);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (i > 0) {
      EXPECT_LE(kept[i - 1].until, kept[i].until);
    }
    EXPECT_EQ(kept[i].address.tier, TierId{1}) << "the spilling plan starts with everything there";
    ASSERT_LT(kept[i].until, plan.instructions.size());
    const auto* copy = std::get_if<Copy>(&plan.instructions[kept[i].until]);
    ASSERT_NE(copy, nullptr) << "the first to change it is its way back";
    EXPECT_EQ(copy->to, TierId{1});
  }
}

/// A weight in both tiers at the start; what changes it, and where, decides from where and until when it is
/// read.
TEST(BackgroundCheckpoint, IsReadUntilTheFirstInstructionThatMayChangeARegion) {
  Graph graph;
  graph.tensors.resize(2);
  graph.tensors[0].persistent = true;
  const TensorId weight{0}, other{1};
  const TierId fast{0}, slow{1};
  Kernel update;
  update.inputs = {{other, {}, {}, {}}};
  update.outputs = {{weight, {}, {}, {}}};
  graph.kernels = {update};
  Plan plan;
  plan.start = {{weight, fast, 64}, {weight, slow, 128}};
  const auto kept = [&](std::vector<Instruction> instructions) {
    plan.instructions = std::move(instructions);
    const auto all = kept_tensors(graph, plan);
    EXPECT_EQ(all.size(), 1U);
    return std::tuple(all[0].address.tier, all[0].address.offset, all[0].until);
  };
  const Copy out{{weight}, fast, slow, 0}, in{{weight}, slow, fast, 1};
  const terrace::Run on_fast{{0}, 0, {slow, fast}}, on_slow{{0}, 0, {fast, slow}};
  EXPECT_EQ(kept({on_fast, out}), std::tuple(slow, 128U, 1U));
  EXPECT_EQ(kept({on_slow, in}), std::tuple(fast, 64U, 1U));
  EXPECT_EQ(kept({Free{weight, fast}, Free{other, slow}, Free{weight, slow}}), std::tuple(slow, 128U, 2U));
  EXPECT_EQ(kept({Free{weight, slow}, Free{other, slow}, on_fast}), std::tuple(fast, 64U, 2U));
  EXPECT_EQ(kept({on_slow}), std::tuple(fast, 64U, 1U)) << "never changed";
}

}  // namespace
}  // namespace terrace

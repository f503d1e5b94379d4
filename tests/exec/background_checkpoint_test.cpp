// Checkpoints written behind the steps that follow. The writer is slowed down so that steps overtake it
// wherever nothing holds them back.
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "exec/checkpoint_source.hpp"
#include "exec/planned.hpp"
#include "terrace/error.hpp"
#include "tiers/fake.hpp"

namespace terrace {
namespace {

constexpr useconds_t kPause = 300;  // of the writer, in microseconds, before each tensor

TrainerOptions with_a_slow_writer() {
  return {.seed = 1, .learning_rate = 0.01F, .before_each_kept = [] { usleep(kPause); }};
}

TEST(BackgroundCheckpoint, HoldsWhatWasThereWhenItWasStarted) {
  const TemporaryFolder folder;
  for (const Graph& graph : {small_gpt(), small_resnet()}) {
    for (const SlowTier& slow : slow_tiers(folder)) {
      SCOPED_TRACE(graph.name + " over " + slow.name);
      Trainer trainer = start(graph, slow, with_a_slow_writer());
      Trainer reference = start_unlimited(graph);
      step(trainer, 0);
      step(reference, 0);
      trainer.start_checkpoint(folder / "one").value();
      for (std::uint64_t i = 1; i < 3; ++i) step(trainer, i);
      trainer.finish_checkpoint().value();
      Trainer resumed = start_unlimited(graph);
      resumed.load_checkpoint(folder / "one").value();
      EXPECT_EQ(resumed.steps_done(), 1U);
      expect_same_state(resumed, reference);
      for (std::uint64_t i = 1; i < 3; ++i) step(reference, i);
      expect_same_state(trainer, reference);
    }
  }
}

TEST(BackgroundCheckpoint, HoldsWhatWasThereWithAllMemory) {
  const TemporaryFolder folder;
  Trainer trainer = Trainer::start(compile(small_mobilenet(), 1).value(), with_a_slow_writer()).value();
  Trainer reference = start_unlimited(small_mobilenet());
  const auto last =
      std::find_if(trainer.program().graph.tensors.rbegin(), trainer.program().graph.tensors.rend(),
                   [](const Tensor& tensor) { return tensor.persistent; });
  const std::string weight = last->name;
  trainer.start_checkpoint(folder / "none").value();
  step(trainer, 0);
  trainer.start_checkpoint(folder / "one").value();  // the one before is written then
  Trainer resumed = start_unlimited(small_mobilenet());
  resumed.load_checkpoint(folder / "none").value();
  expect_same_state(resumed, reference);
  trainer.write(weight, std::vector<float>(trainer.read(weight).size(), 3.0F));
  trainer.finish_checkpoint().value();
  step(reference, 0);
  resumed.load_checkpoint(folder / "one").value();
  expect_same_state(resumed, reference);
}

TEST(BackgroundCheckpoint, SurvivesAStepThatFails) {
  const TemporaryFolder folder;
  FakeTier* tier = nullptr;
  TrainerOptions options = with_a_slow_writer();
  std::atomic<bool> waiting{true};
  options.before_each_kept = [&] {
    while (waiting) usleep(kPause);
  };
  options.open = [&](const TierSpec& spec) {
    auto opened = open_tier(spec);
    if (opened && spec.kind == TierKind::fake) tier = static_cast<FakeTier*>(opened->get());
    return opened;
  };
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
    EXPECT_EQ(kept[i].place.tier, TierId{1}) << "the spilling plan starts with everything there";
    ASSERT_LT(kept[i].until, plan.instructions.size());
    const auto* copy = std::get_if<Copy>(&plan.instructions[kept[i].until]);
    ASSERT_NE(copy, nullptr) << "the first to change it is its way back";
    EXPECT_EQ(copy->to, TierId{1});
  }
}

}  // namespace
}  // namespace terrace

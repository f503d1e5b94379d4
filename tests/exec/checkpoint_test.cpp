// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "exec/planned.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

TEST(Checkpoint, ContinuesWithTheSameBitsUnderAnyPlan) {
  const TemporaryFolder folder;
  for (const Graph& graph : {small_gpt(), small_mobilenet()}) {  // dropout, Adam, running statistics
    Trainer whole = start_unlimited(graph);
    whole.set_learning_rate(0.003F);
    for (std::uint64_t i = 0; i < 2; ++i) step(whole, i);
    whole.save_checkpoint(folder / "two").value();
    for (std::uint64_t i = 2; i < 4; ++i) step(whole, i);
    for (const SlowTier& slow : {fake_memory(), fake_blocks()}) {
      SCOPED_TRACE(graph.name + " over " + slow.name);
      Trainer resumed = start(graph, slow, {.seed = 77});
      resumed.load_checkpoint(folder / "two").value();
      EXPECT_EQ(resumed.steps_done(), 2U);
      EXPECT_EQ(resumed.learning_rate(), 0.003F);
      step(resumed, 2);
      resumed.save_checkpoint(folder / "three").value();
      Trainer again = start_unlimited(graph);
      again.load_checkpoint(folder / "three").value();
      step(again, 3);
      expect_same_state(again, whole);
    }
  }
}

TEST(Checkpoint, RevivesATrainerWhoseStepFailed) {
  const TemporaryFolder folder;
  FakeTier* tier = nullptr;
  Trainer trainer =
      start(small_resnet(), fake_blocks(), {.seed = 1, .learning_rate = 0.01F, .open = opening(tier)});
  Trainer unlimited = start_unlimited(small_resnet());
  step(trainer, 0);
  step(unlimited, 0);
  trainer.save_checkpoint(folder / "one").value();
  tier->fail(40, FakeTier::Fault::io_error);
  EXPECT_THROW(step(trainer, 1), EnvironmentError);
  EXPECT_THROW((void)trainer.save_checkpoint(folder / "broken"), EnvironmentError);
  tier->fail(3, FakeTier::Fault::io_error, Access::write);
  EXPECT_THROW((void)trainer.load_checkpoint(folder / "one"), EnvironmentError);
  EXPECT_TRUE(trainer.failed()) << "it was loaded in part";
  trainer.load_checkpoint(folder / "one").value();
  EXPECT_FALSE(trainer.failed());
  EXPECT_EQ(step(trainer, 1), step(unlimited, 1));
  expect_same_state(trainer, unlimited);
  EXPECT_FALSE(std::filesystem::exists(folder / "broken"));
}

TEST(Checkpoint, IsRefusedWhereItIsNoneOfThisGraph) {
  const TemporaryFolder folder;
  Trainer trainer = start_unlimited(small_resnet());
  start_unlimited(small_gpt()).save_checkpoint(folder / "gpt").value();
  trainer.save_weights(folder / "weights").value();
  trainer.save_checkpoint(folder / "whole").value();
  std::filesystem::copy(folder / "whole", folder / "cut");
  std::filesystem::resize_file(folder / "cut", std::filesystem::file_size(folder / "cut") - 1);
  const std::vector<float> before = trainer.read("fc.weight");
  for (const auto& [file, reason] :
       {std::pair{"gpt", "another graph"}, std::pair{"weights", "not a checkpoint"}, std::pair{"cut", "cut"},
        std::pair{"missing", "missing"}}) {
    const auto loaded = trainer.load_checkpoint(folder / file);
    ASSERT_FALSE(loaded) << file;
    EXPECT_NE(loaded.error().message.find(reason), std::string::npos) << loaded.error().message;
  }
  EXPECT_FALSE(trainer.failed());
  EXPECT_EQ(trainer.read("fc.weight"), before);
}

/// The process is killed while it writes, wherever it happens to be.
TEST(Checkpoint, OutlivesAKilledWriter) {
  const TemporaryFolder folder;
  Trainer trainer = start_unlimited(small_mobilenet());
  step(trainer, 0);
  trainer.save_checkpoint(folder / "state").value();
  for (int round = 0; round < 10; ++round) {
    const pid_t writer = fork();
    if (writer == 0) {
      for (;;) (void)trainer.save_checkpoint(folder / "state");
    }
    usleep(2000U + 3000U * static_cast<unsigned>(round));
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    Trainer resumed = start_unlimited(small_mobilenet());
    ASSERT_TRUE(resumed.load_checkpoint(folder / "state"));
    expect_same_state(resumed, trainer);
  }
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "exec/planned.hpp"
#include "terrace/error.hpp"
#include "tiers/fake.hpp"

namespace terrace {
namespace {

/// A trainer whose slow tier fails on command.
struct Faulty {
  explicit Faulty(const SlowTier& slow) : trainer(start(small_resnet(), slow, options())) {}

  TrainerOptions options() { return {.seed = 1, .learning_rate = 0.01F, .open = opening(tier)}; }

  FakeTier* tier = nullptr;
  Trainer trainer;
};

std::string failure_of(Trainer& trainer) {
  fill_inputs(trainer, 1);
  try {
    trainer.step();
  } catch (const EnvironmentError& error) {
    EXPECT_NE(error.place().tier.find("fake:"), std::string::npos) << error.place().tier;
    return error.what();
  }
  return "";
}

TEST(FailedStep, NamesWhatFailed) {
  for (const auto& [fault, cause] :
       {std::pair{FakeTier::Fault::io_error, EIO}, std::pair{FakeTier::Fault::no_space, ENOSPC}}) {
    for (const Access access : {Access::read, Access::write}) {
      Faulty faulty(fake_blocks());
      faulty.tier->fail(3, fault, access);
      fill_inputs(faulty.trainer, 1);
      try {
        faulty.trainer.step();
        FAIL() << "the fault was not seen";
      } catch (const EnvironmentError& error) {
        EXPECT_EQ(error.place().cause, cause);
      }
    }
  }
}

TEST(FailedStep, RefusesEverythingThatWouldUseItsTensors) {
  const TemporaryFolder folder;
  for (const SlowTier& slow : {fake_blocks(), fake_memory()}) {
    SCOPED_TRACE(slow.name);
    Faulty faulty(slow);
    Trainer& trainer = faulty.trainer;
    step(trainer, 0);
    EXPECT_FALSE(trainer.failed());
    faulty.tier->fail(5, FakeTier::Fault::io_error);
    EXPECT_NE(failure_of(trainer), "");
    EXPECT_TRUE(trainer.failed());
    faulty.tier->heal();
    EXPECT_NE(failure_of(trainer).find("step 1 of small resnet did not complete"), std::string::npos);
    EXPECT_EQ(trainer.steps_done(), 1U);
    EXPECT_THROW(trainer.read("fc.weight"), EnvironmentError);
    EXPECT_THROW(trainer.result(0), EnvironmentError);
    EXPECT_THROW((void)trainer.save_weights(folder / "weights"), EnvironmentError);
    EXPECT_TRUE(folder.empty());
  }
}

TEST(FailedSave, LeavesTheOldFileAndTheTrainerAsTheyWere) {
  const TemporaryFolder folder;
  Faulty faulty(fake_blocks());
  faulty.trainer.save_weights(folder / "weights").value();
  Trainer before = start_unlimited(small_resnet());
  step(faulty.trainer, 1);
  faulty.tier->fail(5, FakeTier::Fault::io_error);
  EXPECT_THROW((void)faulty.trainer.save_weights(folder / "weights"), EnvironmentError);
  EXPECT_FALSE(faulty.trainer.failed());
  Trainer loaded = start_unlimited(small_resnet());
  loaded.write("fc.weight", std::vector<float>(loaded.read("fc.weight").size()));
  loaded.load_weights(folder / "weights").value();
  expect_same_state(loaded, before);
  step(before, 1);
  expect_same_state(faulty.trainer, before);
}

/// Whichever operation of a step fails, the step says so.
TEST(FailedStep, IsSeenWhateverOperationFails) {
  Faulty whole(fake_blocks());
  const std::uint64_t before = whole.tier->operations();
  step(whole.trainer, 1);
  const std::uint64_t operations = whole.tier->operations() - before;
  ASSERT_GT(operations, 50U);
  for (std::uint64_t nth = 1; nth <= operations; nth += operations / 11) {
    Faulty faulty(fake_blocks());
    faulty.tier->fail(nth, FakeTier::Fault::io_error);
    EXPECT_NE(failure_of(faulty.trainer), "") << nth;
    EXPECT_TRUE(faulty.trainer.failed());
  }
}

TEST(FailedStep, IsNoneWhereADiskIsOnlyShortOrSlow) {
  Faulty faulty(fake_blocks());
  Trainer unlimited = start_unlimited(small_resnet());
  faulty.tier->fail_randomly(0.3, FakeTier::Fault::short_transfer, 1);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(step(faulty.trainer, i), step(unlimited, i));
  faulty.tier->heal();
  expect_same_state(faulty.trainer, unlimited);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Whatever fails, every object keeps its last written contents, or the operation that could not be done says
// so.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/contents.hpp"
#include "support/long_tests.hpp"
#include "support/tiers.hpp"
#include "terrace/error.hpp"
#include "terrace/manager.hpp"

namespace terrace {
namespace {
using namespace literals;

constexpr TierId kFast{0}, kSlow{1};
using Fault = FakeTier::Fault;

class EveryFault : public testing::TestWithParam<std::tuple<std::string_view, Fault>> {};

// A fixed little program over 12 objects, of which four fit in fast memory. Returns how often it was
// interrupted.
int run_program(Manager& manager, std::vector<std::pair<ObjectId, std::uint64_t>>& shadow) {
  int raised = 0;
  const auto attempt = [&](const auto& action) {
    try {
      action();
    } catch (const EnvironmentError& error) {
      ++raised;
      EXPECT_NE(std::string(error.what()).find("fake"), std::string::npos)
          << "names the tier: " << error.what();
    }
  };
  for (std::uint64_t i = 0; i < 12; ++i) {
    attempt([&] {
      const ObjectId object = manager.create(60'000_B).value();
      write(manager, object, i);
      shadow.emplace_back(object, i);
    });
  }
  for (auto& [object, seed] : shadow) {
    manager.will_write(object);
    attempt([&, &object = object, &seed = seed] {
      const Pin pin = manager.pin(object, Access::write).value();
      fill(pin, seed += 100);
    });
    manager.archive(object);
  }
  manager.settle();
  return raised;
}

TEST_P(EveryFault, OfTheNthOperationLosesNothing) {
  const auto [policy, fault] = GetParam();
  int interrupted = 0, met = 0;
  for (std::uint64_t nth = 1; nth <= 40; nth += few_or_all<std::uint64_t>(3, 1)) {
    Manager manager(open_tiers({"dram:256KiB", "fake:4MiB,blocks"}), make_policy(policy).value());
    FakeTier& slow = as_fake(manager.tier(kSlow));
    slow.fail(nth, fault);
    std::vector<std::pair<ObjectId, std::uint64_t>> shadow;
    const int raised = run_program(manager, shadow);
    met += slow.operations() >= nth;
    interrupted += raised;
    slow.heal();
    for (const auto& [object, seed] : shadow) EXPECT_TRUE(holds(manager, object, seed)) << "fault at " << nth;
    EXPECT_TRUE(manager.validate().ok());
    const ManagerStatistics statistics = manager.statistics();
    if (raised > 0) {
      EXPECT_GE(statistics.failed_copies, 1u);
      EXPECT_FALSE(statistics.last_failure.empty());
    }
  }
  EXPECT_GT(met, 5) << "the program must do enough for faults to matter";
  if (fault == Fault::short_transfer) {
    EXPECT_EQ(interrupted, 0) << "a short transfer is completed, not reported";
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, EveryFault,
                         testing::Combine(testing::Values("LM", "LMP", "lru", "async-LMP"),
                                          testing::Values(Fault::io_error, Fault::no_space,
                                                          Fault::short_transfer, Fault::no_progress)));

TEST(Faults, AFailedPrefetchIsRaisedByThePinNotByTheHint) {
  Manager manager(open_tiers({"dram:128KiB", "fake:1MiB,blocks"}), make_policy("LMP").value());
  const ObjectId a = manager.create(100'000_B).value(), b = manager.create(100'000_B).value();
  ASSERT_EQ(manager.where(a), kSlow);
  write(manager, b, 2);
  FakeTier& slow = as_fake(manager.tier(kSlow));
  slow.fail_randomly(1.0, Fault::io_error, 1);
  EXPECT_NO_THROW(manager.will_read(a));
  EXPECT_THROW((void)manager.pin(a, Access::read), EnvironmentError);
  EXPECT_TRUE(holds(manager, b, 2));
  slow.heal();
  EXPECT_TRUE(manager.pin(a, Access::read).ok());
}

TEST(Faults, ALostHelperThreadLosesNoTransfer) {
  MoverOptions options;
  options.helpers = 2;
  options.chunk = 16_KiB;
  std::atomic<unsigned> lost = 0;
  options.before_chunk = [&](unsigned) {
    ++lost;
    throw std::runtime_error("this helper is lost");
  };
  Manager manager(open_tiers({"dram:256KiB", "dram:4MiB"}), make_policy("async-LMP").value(), options);
  std::vector<ObjectId> objects;
  for (std::uint64_t i = 0; i < 4; ++i) objects.push_back(manager.create(60'000_B).value());
  for (std::uint64_t i = 0; i < 4; ++i) write(manager, objects[i], i);
  manager.archive(objects[0]);  // starts a write-back, which nobody waits for
  while (lost < options.helpers) std::this_thread::yield();
  std::vector<std::pair<ObjectId, std::uint64_t>> shadow;
  run_program(manager, shadow);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(holds(manager, objects[i], i));
  for (const auto& [object, seed] : shadow) EXPECT_TRUE(holds(manager, object, seed));
  EXPECT_TRUE(manager.validate().ok());
}

// A copy in progress outlives its object as long as a reader holds on.
TEST(Faults, AnObjectThatEndsWhileItIsEvictedAndReadBreaksNothing) {
  Manager manager(open_tiers({"dram:128KiB", "fake:1MiB,blocks"}), make_policy("LM").value());
  const ObjectId object = manager.create(100'000_B).value();
  write(manager, object, 1);
  as_fake(manager.tier(kSlow)).delay(Seconds{0.02});
  std::thread evicting([&] { (void)manager.create(100'000_B); });
  while (manager.statistics().copies == 0) std::this_thread::yield();
  {
    const Pin pin = manager.pin(object, Access::read).value();
    manager.destroy(object);
    evicting.join();
    EXPECT_EQ(first_difference(pin, 1), pin.size().count);
    EXPECT_TRUE(manager.validate().ok());
  }
  EXPECT_TRUE(manager.validate().ok());
}

}  // namespace
}  // namespace terrace

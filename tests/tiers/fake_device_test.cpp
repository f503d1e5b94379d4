// The fake device brings out mistakes: each is planted here once, and must be seen.
#include "tiers/fake_device.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "terrace/error.hpp"
#include "tiers/tier_access.hpp"

namespace terrace {
namespace {
using namespace literals;
using Schedule = FakeDevice::Schedule;

constexpr Bytes kSize{4096};

// Two pieces of pinned host memory and one of device memory.
struct Bench {
  explicit Bench(Schedule schedule, std::uint64_t seed = 1)
      : device(schedule, seed),
        source(pattern(kSize.count, seed)),
        target(kSize.count),
        pins{device.pin(source), device.pin(target)},
        memory(device.allocate(kSize)),
        in(device.make_queue()),
        out(device.make_queue()),
        arrived(device.make_event()) {}

  DeviceAddress address() const { return memory->address(); }
  // In by one queue and out by another, which waits for the first or does not.
  void there_and_back(bool with_event) {
    in->copy_in(address(), source.data(), kSize);
    in->record(*arrived);
    if (with_event) out->wait_for(*arrived);
    out->copy_out(target.data(), address(), kSize);
    out->finish();
  }

  FakeDevice device;
  std::vector<std::byte> source, target;
  std::array<std::unique_ptr<DevicePin>, 2> pins;
  std::unique_ptr<DeviceAllocation> memory;
  std::unique_ptr<DeviceQueue> in, out;
  std::unique_ptr<DeviceEvent> arrived;
};

class EverySchedule : public ::testing::TestWithParam<Schedule> {};
std::string name_of(const ::testing::TestParamInfo<Schedule>& schedule) {
  static const std::array<std::string, 3> names{"Eager", "Random", "Lazy"};
  return names[static_cast<std::size_t>(schedule.param)];
}
INSTANTIATE_TEST_SUITE_P(Of, EverySchedule,
                         ::testing::Values(Schedule::eager, Schedule::random, Schedule::lazy), name_of);

TEST_P(EverySchedule, CarriesBytesInAndOut) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Bench bench(GetParam(), seed);
    bench.there_and_back(true);
    EXPECT_EQ(bench.target, bench.source);
    EXPECT_EQ(bench.device.violations(), std::vector<std::string>{});
  }
}

TEST_P(EverySchedule, NoticesAMissingEvent) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Bench bench(GetParam(), seed);
    bench.there_and_back(false);
    ASSERT_EQ(bench.device.violations().size(), 1u) << "seed " << seed;
    EXPECT_NE(bench.device.violations().front().find("nothing puts copy out"), std::string::npos);
    bench.in->finish();
  }
}

TEST(FakeDevice, GivesOtherBytesWhereAnEventIsMissing) {
  Bench lazy(Schedule::lazy);
  lazy.there_and_back(false);
  EXPECT_NE(lazy.target, lazy.source) << "the copy in had not run";
  lazy.in->finish();
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Bench bench(Schedule::random, seed);
    bench.there_and_back(false);
    wrong += bench.target != bench.source;
    bench.in->finish();
  }
  EXPECT_GT(wrong, 0);
  EXPECT_LT(wrong, 50);
}

TEST_P(EverySchedule, TakesTheHostsWaitingForOrder) {
  Bench bench(GetParam());
  bench.in->copy_in(bench.address(), bench.source.data(), kSize);
  bench.in->record(*bench.arrived);
  while (!bench.arrived->done()) {
  }
  bench.out->copy_out(bench.target.data(), bench.address(), kSize);
  bench.out->finish();
  EXPECT_EQ(bench.target, bench.source);
  EXPECT_EQ(bench.device.violations(), std::vector<std::string>{});
}

TEST_P(EverySchedule, OneQueueWorksInOrder) {
  Bench bench(GetParam());
  for (int round = 0; round < 20; ++round) {
    bench.in->copy_in(bench.address(), bench.source.data(), kSize);
    bench.in->copy_out(bench.target.data(), bench.address(), kSize);
    bench.in->copy_within(bench.address() + 2048, bench.address(), {2048});
  }
  bench.in->finish();
  EXPECT_EQ(bench.target, bench.source);
  EXPECT_EQ(bench.device.violations(), std::vector<std::string>{});
}

TEST_P(EverySchedule, RunsKernelsBetweenCopies) {
  Bench bench(GetParam());
  const FakeDevice::Range all{bench.address().value, bench.address().value + kSize.count};
  const auto done = bench.device.make_event();
  const auto compute = bench.device.make_queue();
  bench.in->copy_in(bench.address(), bench.source.data(), kSize);
  bench.in->record(*bench.arrived);
  compute->wait_for(*bench.arrived);
  bench.device.launch(*compute, {all}, {all}, [&] {
    std::byte* const bytes = bench.device.bytes_at(bench.address());
    for (std::size_t i = 0; i < kSize.count; ++i) bytes[i] ^= std::byte{0xFF};
  });
  compute->record(*done);
  bench.out->wait_for(*done);
  bench.out->copy_out(bench.target.data(), bench.address(), kSize);
  bench.out->finish();
  for (std::byte& one : bench.source) one ^= std::byte{0xFF};
  EXPECT_EQ(bench.target, bench.source);
  EXPECT_EQ(bench.device.violations(), std::vector<std::string>{});
}

TEST(FakeDevice, FillsADestinationWithRubbishWhenTheCopyIsIssued) {
  Bench bench(Schedule::lazy);
  bench.in->copy_in(bench.address(), bench.source.data(), kSize);
  bench.in->finish();
  bench.target = bench.source;
  bench.out->copy_out(bench.target.data(), bench.address(), kSize);
  EXPECT_NE(bench.target, bench.source) << "a host that reads too early";
  bench.out->finish();
  EXPECT_EQ(bench.target, bench.source);
}

TEST(FakeDevice, NoticesASourceThatTheHostChangedTooEarly) {
  Bench bench(Schedule::lazy);
  bench.in->copy_in(bench.address(), bench.source.data(), kSize);
  bench.source[7] ^= std::byte{1};
  bench.in->finish();
  ASSERT_EQ(bench.device.violations().size(), 1u);
  EXPECT_NE(bench.device.violations().front().find("changed after it was issued"), std::string::npos);
}

TEST(FakeDevice, NoticesMemoryThatIsNotPinned) {
  Bench bench(Schedule::eager);
  const std::vector<std::byte> loose(kSize.count);
  EXPECT_FALSE(bench.device.reaches(loose));
  EXPECT_TRUE(bench.device.reaches(bench.source));
  bench.in->copy_in(bench.address(), loose.data(), kSize);
  ASSERT_EQ(bench.device.violations().size(), 1u);
  EXPECT_NE(bench.device.violations().front().find("not pinned"), std::string::npos);
}

TEST(FakeDevice, NoticesMemoryFreedInUse) {
  Bench bench(Schedule::lazy);
  bench.in->copy_in(bench.address(), bench.source.data(), kSize);
  bench.memory.reset();
  ASSERT_EQ(bench.device.violations().size(), 1u);
  EXPECT_NE(bench.device.violations().front().find("freed"), std::string::npos);
}

#if !defined(__SANITIZE_THREAD__)
TEST(FakeDeviceDeathTest, AHostThatDereferencesAnAddressDies) {
  Bench bench(Schedule::eager);
  EXPECT_DEATH(
      {
        volatile std::byte* bytes = reinterpret_cast<std::byte*>(bench.address().value);
        bytes[0] = std::byte{1};
      },
      "");
}
#endif

TEST_P(EverySchedule, FailsTheNthCallAndWorksOn) {
  for (std::uint64_t nth = 1;; ++nth) {
    Bench bench(GetParam());
    bench.device.fail_call(nth);
    bool failed = false;
    try {
      bench.there_and_back(true);
    } catch (const EnvironmentError& error) {
      failed = true;
      EXPECT_NE(std::string(error.what()).find(bench.device.name()), std::string::npos);
      bench.in->finish();
      bench.out->finish();
      bench.there_and_back(true);
    }
    EXPECT_EQ(bench.target, bench.source);
    EXPECT_EQ(bench.device.violations(), std::vector<std::string>{});
    if (!failed) {
      EXPECT_EQ(nth, 6u) << "two copies, an event, a wait for it and one for the queue";
      break;
    }
  }
}

TEST_P(EverySchedule, ALostDeviceStaysLostUntilItIsHealed) {
  Bench bench(GetParam());
  bench.device.fail_run(2);
  EXPECT_THROW(bench.there_and_back(true), EnvironmentError);
  EXPECT_THROW(bench.in->finish(), EnvironmentError);
  EXPECT_THROW(bench.arrived->wait(), EnvironmentError);
  EXPECT_THROW(bench.device.make_queue(), EnvironmentError);
  bench.device.heal();
  bench.there_and_back(true);
  EXPECT_EQ(bench.target, bench.source);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// The fake device brings out mistakes: each is planted here once, and must be seen.
#include "tiers/fake_device.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <utility>

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

// Copies between cells, each on one of three queues, each waiting for the earlier ones named.
struct RandomProgram {
  static constexpr std::size_t kQueues = 3, kCells = 6, kCopies = 14;
  static constexpr std::uint64_t kCell = 64;
  struct Copy {
    std::size_t queue, from, to;
    std::vector<std::size_t> after;
  };

  explicit RandomProgram(std::mt19937_64& random) {
    for (std::size_t i = 0; i < kCopies; ++i) {
      Copy copy{random() % kQueues, random() % kCells, 0, {}};
      copy.to = (copy.from + 1 + random() % (kCells - 1)) % kCells;
      for (std::size_t j = 0; j < i; ++j) {
        if (conflict(copy, copies[j]) && copy.queue != copies[j].queue) copy.after.push_back(j);
      }
      copies.push_back(copy);
    }
  }
  static bool conflict(const Copy& a, const Copy& b) {
    return a.to == b.to || a.to == b.from || a.from == b.to;
  }
  // Returns false if there is nothing to drop.
  bool drop_one_wait(std::mt19937_64& random) {
    std::vector<std::pair<std::size_t, std::size_t>> waits;
    for (std::size_t i = 0; i < kCopies; ++i) {
      for (std::size_t k = 0; k < copies[i].after.size(); ++k) waits.emplace_back(i, k);
    }
    if (waits.empty()) return false;
    const auto [i, k] = waits[random() % waits.size()];
    copies[i].after.erase(copies[i].after.begin() + static_cast<std::ptrdiff_t>(k));
    return true;
  }
  // The oracle: whether queues and waits order every pair of copies that conflict.
  bool safe() const {
    std::array<std::array<bool, kCopies>, kCopies> before{};
    for (std::size_t i = 0; i < kCopies; ++i) {
      for (std::size_t j = 0; j < i; ++j) before[j][i] = copies[j].queue == copies[i].queue;
      for (const std::size_t j : copies[i].after) before[j][i] = true;
    }
    for (std::size_t k = 0; k < kCopies; ++k) {
      for (std::size_t i = 0; i < kCopies; ++i) {
        for (std::size_t j = 0; j < kCopies; ++j) before[i][j] |= before[i][k] && before[k][j];
      }
    }
    for (std::size_t i = 0; i < kCopies; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (conflict(copies[i], copies[j]) && !before[j][i]) return false;
      }
    }
    return true;
  }
  std::vector<std::byte> expected(std::vector<std::byte> cells) const {
    for (const Copy& copy : copies) {
      std::memcpy(cells.data() + copy.to * kCell, cells.data() + copy.from * kCell, kCell);
    }
    return cells;
  }
  std::vector<std::byte> run(FakeDevice& device, std::vector<std::byte> cells) const {
    const auto pin = device.pin(cells);
    const auto memory = device.allocate({cells.size()});
    std::vector<std::unique_ptr<DeviceQueue>> queues;
    for (std::size_t i = 0; i < kQueues; ++i) queues.push_back(device.make_queue());
    queues[0]->copy_in(memory->address(), cells.data(), {cells.size()});
    queues[0]->finish();
    std::vector<std::unique_ptr<DeviceEvent>> ends;
    for (const Copy& copy : copies) {
      DeviceQueue& queue = *queues[copy.queue];
      for (const std::size_t j : copy.after) queue.wait_for(*ends[j]);
      queue.copy_within(memory->address() + copy.to * kCell, memory->address() + copy.from * kCell, {kCell});
      ends.push_back(device.make_event());
      queue.record(*ends.back());
    }
    for (const auto& queue : queues) queue->finish();
    queues[0]->copy_out(cells.data(), memory->address(), {cells.size()});
    queues[0]->finish();
    return cells;
  }

  std::vector<Copy> copies;
};

TEST_P(EverySchedule, NoticesADroppedWaitExactlyWhereItMatters) {
  std::mt19937_64 random(7);
  const auto cells = pattern(RandomProgram::kCells * RandomProgram::kCell, 1);
  int safe = 0, unsafe = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomProgram program(random);
    ASSERT_TRUE(program.safe());
    for (const bool complete : {true, false}) {
      if (!complete && !program.drop_one_wait(random)) continue;
      FakeDevice device(GetParam(), seed);
      const auto result = program.run(device, cells);
      ASSERT_EQ(device.violations().empty(), program.safe()) << "seed " << seed;
      if (!program.safe()) {
        ++unsafe;
        continue;
      }
      safe += complete ? 0 : 1;
      ASSERT_EQ(result, program.expected(cells)) << "seed " << seed;
    }
  }
  EXPECT_GT(safe, 20) << "waits that another one implies";
  EXPECT_GT(unsafe, 20);
}

}  // namespace
}  // namespace terrace

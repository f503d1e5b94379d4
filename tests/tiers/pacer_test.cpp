// SPDX-License-Identifier: Apache-2.0
#include "tiers/pacer.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "tiers/emulated.hpp"
#include "tiers/virtual_clock.hpp"

namespace terrace {
namespace {
using namespace literals;
using namespace std::chrono_literals;

constexpr BytesPerSecond kRead{4e9}, kWrite{1e9};

class PacerTest : public testing::Test {
 protected:
  Seconds now() const { return clock_.now() - Clock::Time{0}; }

  explicit PacerTest(VirtualClock::Oversleep oversleep = {100us, 100us}) : clock_(oversleep) {}

  // How long one call takes.
  Seconds time(Pacer& pacer, Bytes read, Bytes written, Seconds took = Seconds{0}) {
    const Seconds before = now();
    pacer.hold(read, written, took);
    return now() - before;
  }

  // A client whose copies take `copy` each. Bytes done by the end of each window of 100 ms.
  std::vector<double> windows(Pacer& pacer, Access access, Bytes chunk, Clock::Time copy, int count) {
    std::vector<double> done(static_cast<std::size_t>(count));
    const Seconds start = now();
    for (;;) {
      clock_.work(copy);
      access == Access::read ? pacer.hold(chunk, {}, copy) : pacer.hold({}, chunk, copy);
      const auto window = static_cast<std::size_t>((now() - start) / Seconds{0.1});
      if (window >= done.size()) return done;
      done[window] += static_cast<double>(chunk.count);
    }
  }

  static void expect_rate(const std::vector<double>& windows, BytesPerSecond rate) {
    for (const double bytes : windows) EXPECT_NEAR(bytes / (rate.value * 0.1), 1, 0.05);
  }

  VirtualClock clock_;
};

TEST_F(PacerTest, EveryWindowOf100msHoldsTheDeclaredRate) {
  for (const auto chunk : {64_KiB, 256_KiB, 1_MiB, 3_MiB}) {
    Pacer pacer(kRead, kWrite, Seconds{304e-9}, clock_);
    expect_rate(windows(pacer, Access::read, chunk, 10us, 20), kRead);
    expect_rate(windows(pacer, Access::write, chunk, 10us, 20), kWrite);
  }
}

TEST_F(PacerTest, LatencyDoesNotLowerTheRateOfLargeChunks) {
  Pacer pacer(kRead, kWrite, Seconds{10e-6}, clock_);
  expect_rate(windows(pacer, Access::read, 1_MiB, 10us, 20), kRead);
}

TEST_F(PacerTest, EachOperationPaysTheLatency) {
  Pacer pacer({1e15}, {1e15}, Seconds{10e-6}, clock_);
  const Seconds before = now();
  constexpr int kOperations = 10000;
  for (int i = 0; i < kOperations; ++i) pacer.hold(64_B, {}, Seconds{0});
  // Each sleep also lasts 100 us too long, which pays for no latency.
  const double slept = (now() - before).count(), sleeps = kOperations * 10e-6 / 50e-6;
  EXPECT_NEAR(slept - sleeps * 100e-6, kOperations * 10e-6, 0.001);
}

TEST_F(PacerTest, DirectionsDoNotSlowEachOther) {
  Pacer pacer(kRead, kWrite, Seconds{0}, clock_);
  std::vector<double> read, written;
  clock_.join();
  {
    std::jthread reader([&] {
      read = windows(pacer, Access::read, 1_MiB, 10us, 10);
      clock_.leave();
    });
    std::jthread writer([&] {
      written = windows(pacer, Access::write, 1_MiB, 10us, 10);
      clock_.leave();
    });
  }
  expect_rate(read, kRead);
  expect_rate(written, kWrite);
}

class Sharing : public PacerTest, public testing::WithParamInterface<int> {};

TEST_P(Sharing, ClientsOfOneLaneGetEqualParts) {
  const int clients = GetParam();
  Pacer pacer(kRead, kWrite, Seconds{304e-9}, clock_);
  std::vector<std::vector<double>> done(static_cast<std::size_t>(clients));
  clock_.join(static_cast<unsigned>(clients - 1));
  {
    std::vector<std::jthread> threads;
    for (auto& mine : done) {
      threads.emplace_back([&] {
        mine = windows(pacer, Access::read, 1_MiB, 50us, 10);
        clock_.leave();
      });
    }
  }
  double all = 0;
  for (const auto& mine : done) {
    const double part = std::accumulate(mine.begin(), mine.end(), 0.0) / kRead.value;
    EXPECT_NEAR(part * clients, 1, 0.1);
    all += part;
  }
  EXPECT_NEAR(all, 1, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Clients, Sharing, testing::Values(2, 3, 8));

TEST_F(PacerTest, ALargeOperationLeavesTurnsToSmallOnes) {
  Pacer pacer(kRead, kWrite, Seconds{0}, clock_);
  Seconds small{0};
  clock_.join();
  {
    std::jthread large([&] {
      pacer.hold(1_GiB, {}, Seconds{0});
      clock_.leave();
    });
    std::jthread other([&] {
      clock_.work(20ms);
      small = time(pacer, 1_MiB, {});
      clock_.leave();
    });
  }
  EXPECT_LT(small.count(), 5 * (1_MiB / kRead).count());
}

TEST_F(PacerTest, IdleTimeEarnsNothing) {
  Pacer pacer(kRead, kWrite, Seconds{0}, clock_);
  clock_.work(3600s);
  const Bytes amount = 1_GB;
  EXPECT_GE(time(pacer, {}, amount), amount / kWrite);
}

class BusyComputer : public PacerTest {
 protected:
  BusyComputer() : PacerTest({100us, 8ms, 40}) {}
};

TEST_F(BusyComputer, WakingLateDoesNotLowerTheRate) {
  Pacer pacer(kRead, kWrite, Seconds{304e-9}, clock_);
  const auto done = windows(pacer, Access::read, 1_MiB, 10us, 20);
  EXPECT_NEAR(std::accumulate(done.begin(), done.end(), 0.0) / (2 * kRead.value), 1, 0.02);
}

TEST_F(BusyComputer, IdleTimeAfterWakingLateEarnsNoMoreThanTheLateness) {
  for (int i = 0; i < 100; ++i) {
    Pacer pacer(kRead, kWrite, Seconds{0}, clock_);
    const Bytes first = 1_MiB * static_cast<std::uint64_t>(1 + i);
    const Seconds late = time(pacer, {}, first) - first / kWrite;
    clock_.work(15ms);
    EXPECT_GE(time(pacer, {}, 20_MB).count(), (20_MB / kWrite - late).count() - 1e-6);
  }
}

TEST_F(BusyComputer, NobodyMakesUpForMoreThanTheLimit) {
  VirtualClock slow({1s, 1s});
  Pacer pacer(kRead, kWrite, Seconds{0}, slow);
  pacer.hold({}, 1_MB, Seconds{0});
  const Clock::Time before = slow.now();
  pacer.hold({}, 100_MB, Seconds{0});
  EXPECT_GE(Seconds(slow.now() - before), 100_MB / kWrite - Pacer::kMostLateness);
}

TEST_F(PacerTest, AKernelIsHeldForWhatItsOwnTimeDidNotCover) {
  Pacer pacer(kRead, kWrite, Seconds{0}, clock_);
  const Seconds needed = 400_MB / kRead;  // 0.1 s
  clock_.work(10s);
  EXPECT_NEAR(time(pacer, 400_MB, {}, Seconds{0.06}).count(), needed.count() - 0.06, 0.001);
  clock_.work(10s);
  EXPECT_EQ(time(pacer, 400_MB, {}, Seconds{0.11}).count(), 0);
}

TEST_F(PacerTest, AShortKernelIsHeldEvenIfTheDeviceWasIdleBefore) {
  Pacer pacer(kRead, kWrite, Seconds{0}, clock_);
  const Bytes amount = 4_MB;  // 1 ms, less than the credit
  Seconds held{0};
  for (int i = 0; i < 100; ++i) {
    clock_.work(10ms);
    clock_.work(400us);
    held += time(pacer, amount, {}, Seconds{400e-6});
  }
  EXPECT_NEAR(held.count() / 100, (amount / kRead).count() - 400e-6, 2e-6);
}

TEST_F(PacerTest, AKernelReadsAndWritesInTurns) {
  Pacer pacer(kRead, kWrite, Seconds{0}, clock_);
  clock_.work(10s);
  EXPECT_NEAR(time(pacer, 400_MB, 200_MB, Seconds{0.002}).count(), 0.1 + 0.2 - 0.002, 0.001);
}

TEST_F(PacerTest, ChargesCountAgainstCopies) {
  Pacer pacer(kRead, kWrite, Seconds{0}, clock_);
  clock_.work(10s);
  pacer.hold(400_MB, {}, Seconds{0.11});  // the lane was busy with it for 0.1 of the 0.11 s
  EXPECT_NEAR(time(pacer, 400_MB, {}).count(), 0.1, 0.001);
}

TEST_F(PacerTest, NothingCostsNothing) {
  Pacer pacer(kRead, kWrite, Seconds{1}, clock_);
  EXPECT_EQ(time(pacer, {}, {}).count(), 0);
}

TEST_F(PacerTest, RefusesARateOfZero) {
  EXPECT_THROW(Pacer({0}, kWrite, Seconds{0}, clock_), std::logic_error);
}

TEST_F(PacerTest, TheEmulatedTierPacesByItsSpec) {
  const auto tier =
      make_emulated_tier(parse_tier_spec("emulated:1MiB,read=4GB/s,write=1GB/s").value(), clock_).value();
  EXPECT_EQ(tier->description().read_rate, kRead);
  EXPECT_EQ(tier->description().write_rate, kWrite);
  const auto timed = [&](auto call) {
    clock_.work(10s);
    const Seconds before = now();
    call();
    return (now() - before).count();
  };
  EXPECT_NEAR(timed([&] { tier->pace(Access::read, 400_MB, Seconds{0}); }), 0.1, 0.001);
  EXPECT_NEAR(timed([&] { tier->pace(Access::write, 400_MB, Seconds{0}); }), 0.4, 0.001);
  EXPECT_NEAR(timed([&] { tier->charge(400_MB, 400_MB, Seconds{0.1}, 1); }), 0.4, 0.001);
}

TEST_F(PacerTest, AccessesThatWaitForOneAnotherEachOweTheLatency) {
  const auto tier =
      make_emulated_tier(parse_tier_spec("emulated:1MiB,read=4GB/s,write=1GB/s,latency=1ms").value(), clock_)
          .value();
  const auto timed = [&](std::uint64_t accesses) {
    clock_.work(10s);
    const Seconds before = now();
    tier->charge(4_KB, {}, Seconds{0}, accesses);
    return (now() - before).count();
  };
  EXPECT_NEAR(timed(1), 1e-3, 2e-4);
  EXPECT_NEAR(timed(700), 0.7, 2e-3);
  EXPECT_NEAR(timed(0), 0, 2e-4);
}

}  // namespace
}  // namespace terrace

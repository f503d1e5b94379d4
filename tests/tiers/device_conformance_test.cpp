// SPDX-License-Identifier: Apache-2.0
// What every device must do, the fake ones and a GPU: queues in order, events and flags between them, pins.
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "terrace/error.hpp"
#include "tiers/cuda.hpp"
#include "tiers/fake_device.hpp"
#include "tiers/tier_access.hpp"

namespace terrace {
namespace {

constexpr Bytes kSize{64 << 10};

enum class Kind { eager, random, lazy, cuda };

class DeviceConformance : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() != Kind::cuda) {
      device_ = std::make_shared<FakeDevice>(static_cast<FakeDevice::Schedule>(GetParam()), 5);
      return;
    }
    static const auto gpu = open_cuda_device(0);
    if (!gpu) GTEST_SKIP() << gpu.error().message;
    device_ = *gpu;
  }
  void TearDown() override {
    if (const auto* const fake = dynamic_cast<const FakeDevice*>(device_.get())) {
      EXPECT_EQ(fake->violations(), std::vector<std::string>{});
    }
  }

  std::shared_ptr<Device> device_;
};
std::string name_of(const testing::TestParamInfo<Kind>& kind) {
  static const std::array<std::string, 4> names{"FakeEager", "FakeRandom", "FakeLazy", "Cuda"};
  return names[static_cast<std::size_t>(kind.param)];
}
INSTANTIATE_TEST_SUITE_P(Of, DeviceConformance,
                         testing::Values(Kind::eager, Kind::random, Kind::lazy, Kind::cuda), name_of);

/// Pinned memory, device memory, and two queues.
struct Bench {
  explicit Bench(Device& device)
      : host(pattern(3 * kSize.count, 1)),
        pin(device.pin(host)),
        memory(device.allocate(kSize)),
        one(device.make_queue()),
        two(device.make_queue()),
        event(device.make_event()) {}

  void in(DeviceQueue& queue, std::uint64_t from) {
    queue.copy_in(memory->address(), host.data() + from, kSize);
  }
  void out(DeviceQueue& queue, std::uint64_t to) {
    queue.copy_out(host.data() + to, memory->address(), kSize);
  }
  std::vector<std::byte> part(std::uint64_t at) const {
    const auto begin = host.begin() + static_cast<std::ptrdiff_t>(at);
    return {begin, begin + static_cast<std::ptrdiff_t>(kSize.count)};
  }

  std::vector<std::byte> host;
  std::unique_ptr<DevicePin> pin;
  std::unique_ptr<DeviceAllocation> memory;
  std::unique_ptr<DeviceQueue> one, two;
  std::unique_ptr<DeviceEvent> event;
};

TEST_P(DeviceConformance, HasANameAndAlignedMemory) {
  EXPECT_FALSE(device_->name().empty());
  const auto memory = device_->allocate({1000});
  EXPECT_EQ(memory->address().value % 256, 0u);
}

TEST_P(DeviceConformance, ReachesWhatIsPinnedWhileItIs) {
  std::vector<std::byte> memory(kSize.count);
  EXPECT_FALSE(device_->reaches(memory));
  {
    const auto pin = device_->pin(memory);
    EXPECT_TRUE(device_->reaches(memory));
  }
  EXPECT_FALSE(device_->reaches(memory));
}

TEST_P(DeviceConformance, AnEventThatWasNeverRecordedIsDone) {
  const auto event = device_->make_event();
  EXPECT_TRUE(event->done());
  event->wait();
}

TEST_P(DeviceConformance, AQueueWaitsForAnEventOfAnother) {
  for (int round = 0; round < 20; ++round) {
    Bench bench(*device_);
    bench.in(*bench.one, 0);
    bench.one->record(*bench.event);
    bench.two->wait_for(*bench.event);
    bench.out(*bench.two, kSize.count);
    bench.two->finish();
    EXPECT_EQ(bench.part(kSize.count), bench.part(0));
  }
}

TEST_P(DeviceConformance, TheHostWaitsForAnEvent) {
  Bench bench(*device_);
  bench.in(*bench.one, 0);
  bench.out(*bench.one, kSize.count);
  bench.one->record(*bench.event);
  bench.event->wait();
  EXPECT_TRUE(bench.event->done());
  EXPECT_EQ(bench.part(kSize.count), bench.part(0));
}

TEST_P(DeviceConformance, AnEventMeansItsLastRecord) {
  Bench bench(*device_);
  bench.one->record(*bench.event);
  bench.in(*bench.one, 0);
  bench.one->record(*bench.event);
  bench.two->wait_for(*bench.event);
  bench.out(*bench.two, kSize.count);
  bench.two->finish();
  EXPECT_EQ(bench.part(kSize.count), bench.part(0));
}

TEST_P(DeviceConformance, AQueueWaitsForAFlagThatTheHostRaises) {
  const auto flag = device_->make_flag();
  if (flag == nullptr) GTEST_SKIP() << device_->name() << " has no flags";
  Bench bench(*device_);
  EXPECT_EQ(flag->value(), 0u);
  bench.in(*bench.one, 0);
  bench.one->wait_for(*flag, 2);
  bench.out(*bench.one, kSize.count);
  bench.one->record(*bench.event);
  flag->raise(1);
  EXPECT_FALSE(bench.event->done()) << "it waits for two";
  std::jthread host([&] { flag->raise(2); });
  bench.one->finish();
  EXPECT_EQ(flag->value(), 2u);
  EXPECT_EQ(bench.part(kSize.count), bench.part(0));
  bench.one->wait_for(*flag, 1);
  bench.one->finish();
}

// What the host does before it raises a flag is seen behind it: a porter's work.
TEST_P(DeviceConformance, WhatTheHostWroteBeforeAFlagIsThereBehindIt) {
  const auto flag = device_->make_flag();
  if (flag == nullptr) GTEST_SKIP() << device_->name() << " has no flags";
  for (std::uint32_t round = 1; round <= 20; ++round) {
    Bench bench(*device_);
    bench.one->wait_for(*flag, round);
    bench.in(*bench.one, 0);
    bench.out(*bench.one, kSize.count);
    const auto written = pattern(kSize.count, 100 + round);
    std::jthread host([&] {
      std::copy(written.begin(), written.end(), bench.host.begin());
      flag->raise(round);
    });
    bench.one->finish();
    EXPECT_EQ(bench.part(kSize.count), written);
  }
}

TEST_P(DeviceConformance, AQueueRaisesAFlagForAnotherAndForTheHost) {
  const auto flag = device_->make_flag();
  if (flag == nullptr) GTEST_SKIP() << device_->name() << " has no flags";
  Bench bench(*device_);
  bench.two->wait_for(*flag, 7);
  bench.out(*bench.two, kSize.count);
  bench.in(*bench.one, 0);
  bench.one->raise(*flag, 7);
  bench.two->finish();
  EXPECT_EQ(flag->value(), 7u);
  EXPECT_EQ(bench.part(kSize.count), bench.part(0));
  bench.one->finish();
}

TEST(FakeDeviceFlags, AFlagThatIsRaisedTooEarlyIsNoted) {
  FakeDevice device(FakeDevice::Schedule::lazy);
  {
    const auto flag = device.make_flag();
    Bench bench(device);
    bench.in(*bench.one, 0);  // under way
    bench.two->wait_for(*flag, 1);
    bench.in(*bench.two, kSize.count);
    flag->raise(1);  // without having waited for the first
    bench.two->finish();
    bench.one->finish();
  }
  ASSERT_EQ(device.violations().size(), 1u);
  EXPECT_NE(device.violations().front().find("nothing puts"), std::string::npos);
}

TEST(FakeDeviceFlags, AFlagPutsInOrderWhatTheHostHasSeen) {
  FakeDevice device(FakeDevice::Schedule::lazy);
  {
    const auto flag = device.make_flag();
    Bench bench(device);
    bench.two->wait_for(*flag, 1);
    bench.in(*bench.two, kSize.count);  // issued first, and runs last
    bench.in(*bench.one, 0);
    bench.one->finish();
    flag->raise(1);
    bench.two->finish();
  }
  EXPECT_EQ(device.violations(), std::vector<std::string>{});
}

}  // namespace
}  // namespace terrace

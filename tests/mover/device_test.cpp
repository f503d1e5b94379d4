// SPDX-License-Identifier: Apache-2.0
// Devices: the right bytes arrive between every pair of shapes, whatever the schedule, and failures lose
// nothing.
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "random_moves.hpp"
#include "terrace/borrowed.hpp"
#include "terrace/error.hpp"
#include "tiers/cuda.hpp"
#include "tiers/fake_device.hpp"

namespace terrace {
namespace {
using namespace terrace::testing;
using namespace literals;
using Schedule = FakeDevice::Schedule;

enum class Kind { eager, random, lazy, cuda };

void copy_by_queue(Tier& tier, Access access, Content& content) {
  Device& device = *tier.device()->device;
  const auto pin = device.pin(content);
  const auto queue = device.make_queue();
  if (access == Access::read) queue->copy_out(content.data(), tier.device()->address, {content.size()});
  if (access == Access::write) queue->copy_in(tier.device()->address, content.data(), {content.size()});
  queue->finish();
}

// Two tiers on one device, one on another, memory pinned and not pinned, a disk.
class DeviceRig {
 public:
  static constexpr std::uint32_t kDevice = 0, kDevice2 = 1, kOther = 2, kPinned = 3, kDram = 4, kBlocks = 5,
                                 kTiers = 6;
  static constexpr std::uint64_t kCapacity = 256 * kKiB;

  explicit DeviceRig(Kind kind, std::uint64_t seed = 1) {
    if (kind != Kind::cuda) {
      fake_device = std::make_shared<FakeDevice>(static_cast<Schedule>(kind), seed);
      other_device = std::make_shared<FakeDevice>(static_cast<Schedule>(kind), seed + 1);
    }
    const auto on = [&](const std::shared_ptr<FakeDevice>& device) {
      const std::string spec = device ? "fake:256KiB,device" : "cuda:0:256KiB";
      return device ? open_fake_device_tier(parse_tier_spec(spec).value(), device).value()
                    : open_tier(spec).value();
    };
    owned.push_back(on(fake_device));
    owned.push_back(on(fake_device));
    owned.push_back(on(other_device));
    owned.push_back(fake_device ? make_pinned_for(fake_device, {kCapacity})
                                : open_tier("pinned:256KiB").value());
    owned.push_back(open_tier("dram:256KiB").value());
    owned.push_back(fake("fake:256KiB,blocks"));
    for (const auto& tier : owned) {
      tiers.push_back(tier.get());
      shadow.push_back(random_content(kCapacity, shadow.size()));
      if (tier->device() != nullptr) {
        copy_by_queue(*tier, Access::write, shadow.back());
      } else {
        put(*tier, shadow.back());
      }
    }
  }

  void apply(const Move& move) {
    std::memcpy(shadow[move.to.tier.index].data() + move.to.offset,
                shadow[move.from.tier.index].data() + move.from.offset, move.from.bytes.count);
  }
  /// pre: no mover holds the tiers
  int first_wrong() {
    for (std::size_t i = 0; i < tiers.size(); ++i) {
      Content now(kCapacity);
      if (tiers[i]->device() != nullptr) {
        copy_by_queue(*tiers[i], Access::read, now);
      } else {
        now = get(*tiers[i]);
      }
      if (now != shadow[i]) return static_cast<int>(i);
    }
    return -1;
  }
  std::vector<std::string> violations() const {
    if (!fake_device) return {};
    auto all = fake_device->violations();
    for (const std::string& one : other_device->violations()) all.push_back(one);
    return all;
  }

  std::shared_ptr<FakeDevice> fake_device, other_device;
  std::vector<std::unique_ptr<Tier>> owned;
  std::vector<Tier*> tiers;
  std::vector<Content> shadow;
};

MoverOptions small() { return {.helpers = 2, .chunk = 10_KiB, .bounce = 128_KiB}; }

class EveryDevice : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() != Kind::cuda) return;
    static const auto gpu = open_cuda_device(0);
    if (!gpu) GTEST_SKIP() << gpu.error().message;
  }
};
std::string name_of(const ::testing::TestParamInfo<Kind>& kind) {
  static const std::array<std::string, 4> names{"FakeEager", "FakeRandom", "FakeLazy", "Cuda"};
  return names[static_cast<std::size_t>(kind.param)];
}
INSTANTIATE_TEST_SUITE_P(Of, EveryDevice,
                         ::testing::Values(Kind::eager, Kind::random, Kind::lazy, Kind::cuda), name_of);

TEST_P(EveryDevice, MovesRandomExtentsBetweenEveryPair) {
  std::mt19937_64 random(1);
  DeviceRig rig(GetParam());
  constexpr std::uint64_t kHalf = DeviceRig::kCapacity / 2;
  for (std::uint32_t from = 0; from < DeviceRig::kTiers; ++from) {
    for (std::uint32_t to = 0; to < DeviceRig::kTiers; ++to) {
      {
        Mover mover(rig.tiers, small());
        for (int i = 0; i < 12; ++i) {
          const Move move = random_move(random, from, to, kHalf, 60000);
          mover.move({move});
          rig.apply(move);
        }
        EXPECT_EQ(mover.statistics({from}, {to}).failures, 0u);
        EXPECT_EQ(mover.statistics({from}, {to}).transfers, 12u);
      }
      ASSERT_EQ(rig.first_wrong(), -1) << from << " to " << to;
    }
  }
  EXPECT_EQ(rig.violations(), std::vector<std::string>{});
}

TEST_P(EveryDevice, CarriesOneTransferOverAllLinks) {
  DeviceRig rig(GetParam());
  std::vector<Move> moves;
  for (std::uint32_t from = 0; from < DeviceRig::kTiers; ++from) {
    for (std::uint32_t to = 0; to < DeviceRig::kTiers; ++to) {
      moves.push_back(exact(from, 100, to, 128 * kKiB + from * 9000, 8999));
    }
  }
  {
    Mover mover(rig.tiers, small());
    mover.move(moves);
  }
  for (const Move& move : moves) rig.apply(move);
  EXPECT_EQ(rig.first_wrong(), -1);
  EXPECT_EQ(rig.violations(), std::vector<std::string>{});
}

TEST_P(EveryDevice, KeepsEveryByteUnderFourThreads) {
  DeviceRig rig(GetParam());
  {
    Mover mover(rig.tiers, small());
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        std::mt19937_64 random(thread);
        for (int i = 0; i < 40; ++i) {
          const auto batch = random_batch(random, thread, DeviceRig::kTiers);
          std::vector<Transfer> transfers;
          for (const Move& move : batch) transfers.push_back(mover.start({move}));
          for (Transfer& transfer : transfers) transfer.wait();
          for (const Move& move : batch) rig.apply(move);
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(rig.first_wrong(), -1);
  EXPECT_EQ(rig.violations(), std::vector<std::string>{});
}

TEST_P(EveryDevice, CarriesBorrowedAddresses) {
  DeviceRig rig(GetParam());
  const DeviceMemory memory = *rig.tiers[DeviceRig::kDevice]->device();
  // The device belongs to the rig's tiers, which outlive what is borrowed.
  const auto device_tier = borrow_device_memory(std::shared_ptr<Device>(memory.device, [](Device*) {}));
  const auto host_tier = borrow_host_memory();
  Content theirs = random_content(100000, 5), back(theirs.size()), pinned_back(theirs.size());
  const auto pin = memory.device->pin(pinned_back);
  {
    Mover mover({device_tier.get(), host_tier.get(), rig.tiers[DeviceRig::kBlocks]}, small());
    const Extent there = borrowed_extent({0}, memory.address + 12345, {theirs.size()});
    mover.move({{borrowed_extent({1}, theirs.data(), {theirs.size()}), there}});
    mover.move({{there, borrowed_extent({1}, back.data(), {back.size()})}});
    mover.move({{there, borrowed_extent({1}, pinned_back.data(), {back.size()})}});
    EXPECT_EQ(back, theirs);
    EXPECT_EQ(pinned_back, theirs);
    mover.move({{there, {{2}, 1000, {theirs.size()}}}});
    std::fill(back.begin(), back.end(), std::byte{0});
    mover.move({{{{2}, 1000, {theirs.size()}}, borrowed_extent({1}, back.data(), {back.size()})}});
    EXPECT_EQ(back, theirs);
  }
  EXPECT_EQ(rig.violations(), std::vector<std::string>{});
}

TEST(DeviceNeighbours, TravelAsOneCopy) {
  DeviceRig rig(Kind::eager);
  Mover mover(rig.tiers, small());
  std::vector<Move> moves;
  for (std::uint64_t i = 0; i < 16; ++i) {
    const std::uint64_t at = (i * 5 % 16) * kKiB;
    moves.push_back(exact(DeviceRig::kPinned, at, DeviceRig::kDevice, 64 * kKiB + at, kKiB));
  }
  const std::uint64_t before = rig.fake_device->copies();
  mover.move(moves);
  EXPECT_EQ(rig.fake_device->copies() - before, 1u);
  moves[5].from.offset += 100 * kKiB;
  mover.move(moves);
  EXPECT_EQ(rig.fake_device->copies() - before, 4u) << "one has left the row, and two rows are left";
}

struct Failing {
  const char* name;
  Move move;
};
const std::vector<Failing> kFailing{
    {"In", exact(DeviceRig::kPinned, 100, DeviceRig::kDevice, 5000, 100001)},
    {"Out", exact(DeviceRig::kDevice, 100, DeviceRig::kPinned, 5000, 100001)},
    {"Within", exact(DeviceRig::kDevice, 100, DeviceRig::kDevice2, 5000, 100001)},
    {"FromDisk", exact(DeviceRig::kBlocks, 100, DeviceRig::kDevice, 5000, 100001)},
    {"ToDisk", exact(DeviceRig::kDevice, 100, DeviceRig::kBlocks, 5000, 100001)},
    {"FromMemory", exact(DeviceRig::kDram, 100, DeviceRig::kDevice, 5000, 100001)},
    {"ToMemory", exact(DeviceRig::kDevice, 100, DeviceRig::kDram, 5000, 100001)},
};

class FailingDevice : public ::testing::TestWithParam<Failing> {
 protected:
  // Whether the move failed; then it said where.
  static bool fails(Mover& mover, const Move& move) {
    try {
      mover.move({move});
      return false;
    } catch (const EnvironmentError& error) {
      EXPECT_NE(std::string(error.what()).find("fake:256KiB,device"), std::string::npos) << error.what();
      EXPECT_EQ(error.place().tier, "fake:256KiB,device");
      return true;
    }
  }
};
std::string name_of_failing(const ::testing::TestParamInfo<Failing>& failing) { return failing.param.name; }
INSTANTIATE_TEST_SUITE_P(Of, FailingDevice, ::testing::ValuesIn(kFailing), name_of_failing);

TEST_P(FailingDevice, ReportsARefusedCallAndWorksOn) {
  bool any = false;
  for (std::uint64_t nth = 1; nth < 40; ++nth) {
    DeviceRig rig(Kind::random, nth);
    {
      Mover mover(rig.tiers, small());
      rig.fake_device->fail_call(nth);
      any = fails(mover, GetParam().move) || any;
      rig.fake_device->heal();
      mover.move({GetParam().move});
    }
    rig.apply(GetParam().move);
    ASSERT_EQ(rig.first_wrong(), -1) << "call " << nth;
    ASSERT_EQ(rig.violations(), std::vector<std::string>{}) << "call " << nth;
  }
  EXPECT_TRUE(any);
}

TEST_P(FailingDevice, ReportsALostDeviceAndHangsNothing) {
  bool any = false;
  for (std::uint64_t nth = 1; nth < 10; ++nth) {
    DeviceRig rig(nth % 2 == 0 ? Kind::random : Kind::lazy, nth);
    {
      Mover mover(rig.tiers, small());
      rig.fake_device->fail_run(nth);
      if (fails(mover, GetParam().move)) {
        any = true;
        EXPECT_TRUE(fails(mover, GetParam().move)) << "lost is lost";
      }
      rig.fake_device->heal();
      mover.move({GetParam().move});
    }
    rig.apply(GetParam().move);
    ASSERT_EQ(rig.first_wrong(), -1) << "run " << nth;
  }
  EXPECT_TRUE(any);
}

}  // namespace
}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Failing devices: an error says where and why, sources stay intact, and the mover goes on.
#include <gtest/gtest.h>

#include <cerrno>

#include "terrace/error.hpp"
#include "test_tiers.hpp"

namespace terrace {
namespace {
using namespace terrace::testing;
using namespace literals;
using Fault = FakeTier::Fault;

struct Case {
  const char* name;
  Move move;
  std::uint32_t faulty;
  Access access;
};

const std::vector<Case> kDiskCases{
    {"WriteToDisk", exact(Rig::kDram, 0, Rig::kBlocks, 512, 100 * 512), Rig::kBlocks, Access::write},
    {"UnalignedWriteToDisk", exact(Rig::kDram, 1, Rig::kBlocks, 700, 50001), Rig::kBlocks, Access::write},
    {"BlockReadForUnalignedWrite", exact(Rig::kDram, 1, Rig::kBlocks, 700, 50001), Rig::kBlocks,
     Access::read},
    {"ReadFromDisk", exact(Rig::kBlocks, 512, Rig::kDram, 0, 100 * 512), Rig::kBlocks, Access::read},
    {"UnalignedReadFromDisk", exact(Rig::kBlocks, 700, Rig::kDram, 1, 50001), Rig::kBlocks, Access::read},
    {"ReadOfDiskToDisk", exact(Rig::kBlocks, 700, Rig::kBlocks2, 5000, 100001), Rig::kBlocks, Access::read},
    {"WriteOfDiskToDisk", exact(Rig::kBlocks2, 700, Rig::kBlocks, 5000, 100001), Rig::kBlocks, Access::write},
    {"WriteWithinADisk", exact(Rig::kBlocks, 700, Rig::kBlocks, 120000, 100001), Rig::kBlocks, Access::write},
    {"ReadWithinADisk", exact(Rig::kBlocks, 700, Rig::kBlocks, 120000, 100001), Rig::kBlocks, Access::read},
};
const std::vector<Case> kMemoryCases{
    {"WriteToMemory", exact(Rig::kDram, 3, Rig::kFake, 5, 100001), Rig::kFake, Access::write},
    {"ReadFromMemory", exact(Rig::kFake, 3, Rig::kDram, 5, 100001), Rig::kFake, Access::read},
    {"MemoryBehindAWrite", exact(Rig::kFake, 3, Rig::kBlocks, 5, 50001), Rig::kFake, Access::read},
    {"MemoryBehindARead", exact(Rig::kBlocks, 3, Rig::kFake, 5, 50001), Rig::kFake, Access::write},
};

class EveryFault : public ::testing::TestWithParam<Case> {
 protected:
  static MoverOptions options() { return {.helpers = 2, .chunk = 10_KiB, .bounce = 128_KiB}; }

  void expect_report(const EnvironmentError& error, Rig& rig, Fault fault) const {
    const Extent& extent =
        GetParam().faulty == GetParam().move.from.tier.index &&
                (GetParam().faulty != GetParam().move.to.tier.index || GetParam().access == Access::read)
            ? GetParam().move.from
            : GetParam().move.to;
    const std::string name = rig.tiers[GetParam().faulty]->description().name;
    EXPECT_EQ(error.place().tier, name);
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(std::to_string(error.place().offset)), std::string::npos);
    if (GetParam().name != std::string("ReadWithinADisk")) {  // which may fail where it changes a block
      EXPECT_GE(error.place().offset + 512, extent.offset);
      EXPECT_LT(error.place().offset, extent.offset + extent.bytes.count);
    }
    const bool memory = rig.tiers[GetParam().faulty]->memory() != nullptr;
    EXPECT_EQ(error.place().cause, fault == Fault::no_space                 ? ENOSPC
                                   : fault == Fault::no_progress && !memory ? 0
                                                                            : EIO);
  }

  // Returns whether the fault was met.
  bool survives(Rig& rig, Mover& mover, Fault fault, std::uint64_t nth) const {
    const Case& test = GetParam();
    FakeTier& faulty = rig.fake_at(test.faulty);
    faulty.fail(nth, fault, test.access);
    bool failed = false;
    try {
      mover.move({test.move});
    } catch (const EnvironmentError& error) {
      failed = true;
      expect_report(error, rig, fault);
    }
    faulty.heal();
    return failed;
  }
};

TEST_P(EveryFault, LeavesTheSourceIntactAndTheMoverWorking) {
  const Case& test = GetParam();
  for (const Fault fault : {Fault::io_error, Fault::no_space, Fault::no_progress}) {
    std::uint64_t met = 0;
    for (std::uint64_t nth = 1; nth < 20; ++nth) {
      Rig rig;
      {
        Mover mover(rig.tiers, options());
        const bool failed = survives(rig, mover, fault, nth);
        met += failed ? 1 : 0;
        EXPECT_EQ(failed, met == nth) << "all operations before the last were met";
        EXPECT_EQ(mover.statistics(test.move.from.tier, test.move.to.tier).failures, failed ? 1u : 0u);
        mover.move({test.move});
      }
      rig.apply(test.move);
      ASSERT_EQ(rig.first_wrong(), -1) << nth;
      if (met < nth) break;
    }
    EXPECT_GT(met, 0u);
  }
}

TEST_P(EveryFault, LeavesEverythingButTheDestinationUntouched) {
  const Case& test = GetParam();
  Rig rig;
  {
    Mover mover(rig.tiers, options());
    ASSERT_TRUE(survives(rig, mover, Fault::io_error, 2));
  }
  auto& shadow = rig.shadow[test.move.to.tier.index];
  const Content now = get(*rig.tiers[test.move.to.tier.index]);
  const auto begin = static_cast<std::ptrdiff_t>(test.move.to.offset);
  const auto end = begin + static_cast<std::ptrdiff_t>(test.move.to.bytes.count);
  std::copy(now.begin() + begin, now.begin() + end, shadow.begin() + begin);
  EXPECT_EQ(rig.first_wrong(), -1);
}

class EveryDisk : public EveryFault {};

TEST_P(EveryDisk, MayDoLessThanAskedAndIsAskedAgain) {
  const Case& test = GetParam();
  Rig rig;
  {
    Mover mover(rig.tiers, options());
    for (std::uint64_t nth = 1; nth < 20; ++nth) {
      ASSERT_FALSE(survives(rig, mover, Fault::short_transfer, nth));
    }
    rig.fake_at(test.faulty).fail_randomly(0.7, Fault::short_transfer, 5);
    mover.move({test.move});
    rig.fake_at(test.faulty).heal();
  }
  rig.apply(test.move);
  EXPECT_EQ(rig.first_wrong(), -1);
}

std::string case_name(const ::testing::TestParamInfo<Case>& test) { return test.param.name; }
INSTANTIATE_TEST_SUITE_P(OfADisk, EveryFault, ::testing::ValuesIn(kDiskCases), case_name);
INSTANTIATE_TEST_SUITE_P(OfMemory, EveryFault, ::testing::ValuesIn(kMemoryCases), case_name);
INSTANTIATE_TEST_SUITE_P(Shortened, EveryDisk, ::testing::ValuesIn(kDiskCases), case_name);

TEST(Failure, IsDeclaredOnlyWhenNothingCanArriveAnyMore) {
  for (std::uint64_t nth = 1; nth < 12; ++nth) {
    Rig rig;
    FakeTier& disk = rig.fake_at(Rig::kBlocks);
    {
      Mover mover(rig.tiers);
      disk.delay(Seconds{0.001});
      disk.fail(nth, Fault::io_error);
      EXPECT_THROW(mover.move({exact(Rig::kBlocks, 0, Rig::kDram, 0, 200 * kKiB)}), EnvironmentError);
      put(*rig.tiers[Rig::kDram], rig.shadow[Rig::kDram]);
    }
    ASSERT_EQ(rig.first_wrong(), -1) << "the destination changed after the failure was told";
  }
}

TEST(Failure, OfOneLinkEndsTheWholeTransfer) {
  Rig rig;
  Mover mover(rig.tiers, {.helpers = 1, .chunk = 4_KiB});
  rig.fake_at(Rig::kBlocks).fail(1, Fault::io_error);
  rig.fake_at(Rig::kFake).delay(Seconds{0.0001});
  EXPECT_THROW(
      mover.move({exact(Rig::kDram, 0, Rig::kBlocks, 0, 8192), exact(Rig::kDram, 0, Rig::kFake, 0, 200000),
                  exact(Rig::kBlocks2, 0, Rig::kDram2, 0, 100000)}),
      EnvironmentError);
  EXPECT_EQ(mover.statistics({Rig::kDram}, {Rig::kBlocks}).failures, 1u);
  EXPECT_NO_THROW(mover.move({exact(Rig::kDram, 0, Rig::kBlocks, 0, 8192)}));
}

TEST(Failure, SaysWhatToTry) {
  Rig rig;
  Mover mover(rig.tiers);
  rig.fake_at(Rig::kBlocks).fail(1, Fault::no_space);
  try {
    mover.move({exact(Rig::kDram, 0, Rig::kBlocks, 4096, 512)});
    FAIL() << "a full disk was not noticed";
  } catch (const EnvironmentError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("cannot write tier fake:256KiB,blocks at offset 4096"), std::string::npos) << text;
    EXPECT_NE(text.find("No space left on device"), std::string::npos) << text;
    EXPECT_NE(text.find("free space"), std::string::npos) << text;
  }
}

// A queue that breaks as a whole.
class BrokenBlocks final : public Tier, private BlockQueue {
 public:
  BrokenBlocks() : tier_(fake("fake:64KiB,blocks")) {}
  const TierDescription& description() const noexcept override { return tier_->description(); }
  BlockQueue* blocks() noexcept override { return this; }

 private:
  Bytes block_size() const noexcept override { return tier_->blocks()->block_size(); }
  Bytes memory_alignment() const noexcept override { return tier_->blocks()->memory_alignment(); }
  Bytes request_size() const noexcept override { return tier_->blocks()->request_size(); }
  unsigned depth() const noexcept override { return 2; }
  bool register_memory(std::span<std::byte>) override { return false; }
  void submit(const BlockRequest&) override { submitted_ = true; }
  std::size_t wait(std::span<BlockCompletion> completions) override {
    if (submitted_) throw EnvironmentError("the queue is broken", {"broken", {}, 0, EBADF});
    return tier_->blocks()->wait(completions);
  }
  void wake() override { tier_->blocks()->wake(); }

  std::unique_ptr<FakeTier> tier_;
  bool submitted_ = false;
};

TEST(Failure, OfAWholeQueueFailsWhatItHasAndWhatComes) {
  BrokenBlocks broken;
  WatchedMemory memory(64_KiB, 1);
  Rig rig;
  Mover mover({&memory, &broken, rig.tiers[Rig::kBlocks]});
  auto first = mover.start({exact(0, 0, 1, 0, 64 * kKiB)});
  auto second = mover.start({exact(1, 0, 2, 0, 64 * kKiB)});
  EXPECT_THROW(first.wait(), EnvironmentError);
  EXPECT_THROW(second.wait(), EnvironmentError);
  EXPECT_THROW(mover.move({exact(2, 0, 1, 0, 64 * kKiB)}), EnvironmentError);
  EXPECT_THROW(mover.move({exact(1, 0, 0, 0, 1)}), EnvironmentError);
  EXPECT_NO_THROW(mover.move({exact(0, 0, 2, 0, 1000)}));
}

}  // namespace
}  // namespace terrace

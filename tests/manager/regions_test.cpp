// SPDX-License-Identifier: Apache-2.0
// The data-management interface of 003 section III-C and its invariants.
#include "terrace/regions.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "support/contents.hpp"
#include "support/probe_policy.hpp"
#include "support/tiers.hpp"

namespace terrace {
namespace {
using namespace literals;

constexpr TierId kFast{0}, kMiddle{1}, kSlow{2};

struct RegionsTest : testing::Test {
  Probe probe{open_tiers({"dram:1MiB", "dram:1MiB", "fake:4MiB,blocks"})};
  Manager& manager = *probe.manager;
  ObjectId object = manager.create(100'000_B).value();

  RegionId link_on(Regions& regions, TierId tier) {
    return regions.link(regions.primary(object), regions.allocate(tier, regions.size(object)).value());
  }
  Bytes moved(TierId from, TierId to) { return manager.statistics().links[from.index][to.index].bytes; }
  void TearDown() override { EXPECT_TRUE(manager.validate().ok()) << manager.validate().error().message; }
};

TEST_F(RegionsTest, AnswersQueriesAboutARegion) {
  probe.act([&](Regions& regions) {
    const RegionId x = regions.primary(object);
    EXPECT_EQ(regions.tier(x), kFast);
    EXPECT_GE(regions.size(x), 100'000_B);
    EXPECT_EQ(regions.parent(x), object);
    EXPECT_EQ(regions.linked(x, kFast), x);
    EXPECT_EQ(regions.linked(x, kSlow), std::nullopt);
    const RegionId y = link_on(regions, kSlow);
    EXPECT_EQ(regions.linked(x, kSlow), y);
    EXPECT_EQ(regions.linked(y, kFast), x);
    EXPECT_EQ(regions.parent(y), object);
    EXPECT_EQ(regions.size(y) % regions.description(kSlow).granularity, 0_B);
  });
}

TEST_F(RegionsTest, SecondaryIsStaleUntilCopiedAndAfterTheNextWrite) {
  write(manager, object, 1);
  RegionId y{};
  probe.act([&](Regions& regions) {
    const RegionId x = regions.primary(object);
    y = link_on(regions, kSlow);
    EXPECT_TRUE(regions.stale(y));
    EXPECT_TRUE(regions.dirty(x));
    regions.copy(y, x);
    EXPECT_FALSE(regions.stale(y));
    EXPECT_FALSE(regions.dirty(x));
  });
  write(manager, object, 2);
  probe.act([&](Regions& regions) {
    EXPECT_TRUE(regions.stale(y));
    EXPECT_TRUE(regions.dirty(regions.primary(object)));
    EXPECT_THROW(regions.set_primary(object, y), std::logic_error) << "a stale copy must never be read";
  });
}

TEST_F(RegionsTest, ReadingLeavesCopiesCurrent) {
  write(manager, object, 1);
  probe.act([&](Regions& regions) { regions.copy(link_on(regions, kSlow), regions.primary(object)); });
  EXPECT_TRUE(holds(manager, object, 1));
  probe.act([&](Regions& regions) { EXPECT_FALSE(regions.dirty(regions.primary(object))); });
}

TEST_F(RegionsTest, ThreeTiersKnowTheirOwnStaleness) {
  write(manager, object, 1);
  probe.act([&](Regions& regions) {
    const RegionId x = regions.primary(object);
    const RegionId middle = link_on(regions, kMiddle), slow = link_on(regions, kSlow);
    regions.copy(middle, x);
    EXPECT_FALSE(regions.stale(middle));
    EXPECT_TRUE(regions.stale(slow));
    regions.copy(slow, middle);
    EXPECT_FALSE(regions.stale(slow));
    regions.set_primary(object, slow);
    regions.free(x);
    regions.free(middle);
  });
  EXPECT_EQ(manager.where(object), kSlow);
  EXPECT_TRUE(holds(manager, object, 1));
}

TEST_F(RegionsTest, MarksDirtyAndClean) {
  write(manager, object, 1);
  probe.act([&](Regions& regions) {
    const RegionId x = regions.primary(object), y = link_on(regions, kMiddle);
    regions.copy(y, x);
    regions.mark_dirty(x);
    EXPECT_TRUE(regions.stale(y));
    regions.mark_clean(x);
    EXPECT_FALSE(regions.stale(y));
    EXPECT_THROW(regions.mark_dirty(y), std::logic_error);
  });
}

TEST_F(RegionsTest, EvictionOfACleanObjectCopiesNothing) {
  write(manager, object, 1);
  probe.act([&](Regions& regions) { EXPECT_TRUE(evict(regions, object, kMiddle).ok()); });
  probe.act([&](Regions& regions) { EXPECT_TRUE(prefetch(regions, object, kFast, {}).ok()); });
  const Bytes before = moved(kFast, kMiddle);
  EXPECT_EQ(before, 100'000_B);
  probe.act([&](Regions& regions) { EXPECT_TRUE(evict(regions, object, kMiddle).ok()); });
  EXPECT_EQ(moved(kFast, kMiddle), before);
  EXPECT_EQ(manager.where(object), kMiddle);
  EXPECT_TRUE(holds(manager, object, 1));
}

TEST_F(RegionsTest, EvictionOfADirtyObjectCopies) {
  write(manager, object, 1);
  probe.act([&](Regions& regions) { EXPECT_TRUE(evict(regions, object, kMiddle).ok()); });
  probe.act([&](Regions& regions) { EXPECT_TRUE(prefetch(regions, object, kFast, {}).ok()); });
  write(manager, object, 2);
  probe.act([&](Regions& regions) { EXPECT_TRUE(evict(regions, object, kMiddle).ok()); });
  EXPECT_EQ(moved(kFast, kMiddle), 200'000_B);
  EXPECT_TRUE(holds(manager, object, 2));
}

TEST_F(RegionsTest, UnlinkGivesTheRegionBackToItsHolder) {
  probe.act([&](Regions& regions) {
    const Bytes before = regions.free_bytes(kMiddle);
    {
      const Region region = regions.unlink(link_on(regions, kMiddle));
      EXPECT_EQ(regions.parent(region.id()), std::nullopt);
      EXPECT_LT(regions.free_bytes(kMiddle), before);
    }
    EXPECT_EQ(regions.free_bytes(kMiddle), before) << "dropping the last holder frees it";
    EXPECT_FALSE(regions.linked(regions.primary(object), kMiddle));
  });
}

TEST_F(RegionsTest, RefusesWhatWouldBreakAnInvariant) {
  const ObjectId other = manager.create(1_KiB).value();
  probe.act([&](Regions& regions) {
    const RegionId x = regions.primary(object);
    EXPECT_THROW(regions.free(x), std::logic_error) << "the only contents";
    EXPECT_THROW(regions.copy(x, x), std::logic_error) << "a primary as target";
    const RegionId y = link_on(regions, kMiddle);
    EXPECT_THROW(regions.copy(x, y), std::logic_error) << "a stale source";
    EXPECT_THROW(regions.copy(y, regions.primary(other)), std::logic_error) << "another object's contents";
    EXPECT_THROW(link_on(regions, kMiddle), std::logic_error) << "two regions on one tier";
    EXPECT_THROW(regions.set_primary(other, y), std::logic_error) << "another object's region";
    regions.free(y);
    EXPECT_THROW((void)regions.tier(y), std::logic_error) << "a dead name";
  });
}

TEST_F(RegionsTest, PinnedObjectDoesNotMove) {
  probe.act([&](Regions& regions) { regions.copy(link_on(regions, kMiddle), regions.primary(object)); });
  const Pin pin = manager.pin(object, Access::read).value();
  probe.act([&](Regions& regions) {
    EXPECT_TRUE(regions.pinned(object));
    EXPECT_FALSE(regions.movable(object));
    EXPECT_THROW(regions.set_primary(object, *regions.linked(regions.primary(object), kMiddle)),
                 std::logic_error);
  });
}

TEST_F(RegionsTest, RetiredObjectIsGoneAndNeverMovesAgain) {
  probe.act([&](Regions& regions) {
    regions.retire(object);
    EXPECT_FALSE(regions.alive(object));
    EXPECT_EQ(regions.free_bytes(kFast), regions.description(kFast).capacity);
    EXPECT_THROW((void)regions.primary(object), std::logic_error);
  });
  EXPECT_EQ(manager.pin(object, Access::read).error().code, ErrorCode::retired);
}

TEST_F(RegionsTest, RetiringAPinnedObjectWaitsForThePin) {
  write(manager, object, 3);
  {
    const Pin pin = manager.pin(object, Access::read).value();
    manager.retire(object);
    EXPECT_EQ(first_difference(pin, 3), pin.size().count) << "who holds a pin may finish";
    EXPECT_FALSE(manager.pin(object, Access::read));
    EXPECT_EQ(manager.statistics().objects, 1u);
  }
  EXPECT_EQ(manager.statistics().objects, 0u);
}

TEST_F(RegionsTest, EvictFromClearsAContiguousRange) {
  std::vector<ObjectId> objects{object};
  while (true) {
    const auto next = manager.create(100'000_B);
    if (!next || manager.where(*next) != kFast) break;
    objects.push_back(*next);
    write(manager, *next, objects.size());
    if (manager.statistics().tiers[0].largest_hole < 100'000_B) break;
  }
  probe.act([&](Regions& regions) {
    EXPECT_LT(regions.largest_hole(kFast), 250'000_B);
    const auto hole = regions.evict_from(kFast, regions.primary(objects[2]), 250'000_B, [&](RegionId region) {
      return evict(regions, *regions.parent(region), kSlow).ok();
    });
    EXPECT_GE(hole.value(), 250'000_B);
    EXPECT_GE(regions.largest_hole(kFast), 250'000_B);
  });
  EXPECT_EQ(manager.where(objects[2]), kSlow);
  EXPECT_EQ(manager.where(objects[3]), kSlow);
  EXPECT_EQ(manager.where(objects[1]), kFast);
  EXPECT_TRUE(holds(manager, objects[2], 3));
}

TEST_F(RegionsTest, CompactGathersHolesAndKeepsContents) {
  std::vector<ObjectId> objects;
  for (std::uint64_t i = 0; i < 6; ++i)
    objects.push_back(manager.create(100'000_B + Bytes{i * 1000}).value());
  for (std::uint64_t i = 0; i < 6; ++i) write(manager, objects[i], i);
  manager.destroy(object);
  manager.destroy(objects[1]);
  manager.destroy(objects[4]);
  const Pin held = manager.pin(objects[2], Access::read).value();
  const std::byte* where = held.data();
  probe.act([&](Regions& regions) { regions.compact(kFast); });
  EXPECT_EQ(first_difference(held, 2), held.size().count);
  EXPECT_EQ(held.data(), where);
  for (const std::uint64_t i : {0, 3, 5}) EXPECT_TRUE(holds(manager, objects[i], i));
  EXPECT_LE(manager.statistics().tiers[0].holes, 2u);
}

TEST_F(RegionsTest, BackgroundCopyReportsItsEnd) {
  write(manager, object, 5);
  int reported = 0;
  probe.policy->on_copied = [&](Regions& regions, ObjectId which, RegionId to) {
    EXPECT_EQ(which, object);
    EXPECT_FALSE(regions.stale(to));
    ++reported;
  };
  probe.act([&](Regions& regions) {
    regions.start_copy(link_on(regions, kSlow), regions.primary(object));
    EXPECT_TRUE(regions.copying(object));
    EXPECT_THROW(regions.start_copy(*regions.linked(regions.primary(object), kSlow), regions.primary(object)),
                 std::logic_error);
    EXPECT_TRUE(regions.wait_for_copy());
    EXPECT_FALSE(regions.wait_for_copy());
  });
  EXPECT_EQ(reported, 1);
}

TEST_F(RegionsTest, NeitherEndOfACopyCanBeFreed) {
  write(manager, object, 7);
  as_fake(manager.tier(kSlow)).delay(Seconds{0.02});
  probe.act([&](Regions& regions) {
    const RegionId middle = link_on(regions, kMiddle), slow = link_on(regions, kSlow);
    regions.copy(middle, regions.primary(object));
    regions.start_copy(slow, middle);
    EXPECT_THROW(regions.free(middle), std::logic_error);
    EXPECT_THROW(regions.free(slow), std::logic_error);
    regions.wait_for_copies();
    regions.free(middle);
  });
}

TEST_F(RegionsTest, APolicyThatFailsAtAPinLocksNothing) {
  probe.policy->on_touched = [] { throw std::logic_error("a bug of the policy"); };
  EXPECT_THROW((void)manager.pin(object, Access::write), std::logic_error);
  EXPECT_THROW((void)manager.pin(object, Access::read), std::logic_error);
  probe.policy->on_touched = {};
  EXPECT_TRUE(manager.pin(object, Access::write).ok());
}

TEST_F(RegionsTest, WriterWaitsForTheCopyAndReadersDoNot) {
  write(manager, object, 6);
  as_fake(manager.tier(kSlow)).delay(Seconds{0.02});
  probe.act([&](Regions& regions) { regions.start_copy(link_on(regions, kSlow), regions.primary(object)); });
  { const Pin reader = manager.pin(object, Access::read).value(); }
  { const Pin writer = manager.pin(object, Access::write).value(); }
  probe.act([&](Regions& regions) {
    EXPECT_FALSE(regions.copying(object)) << "the writer could only start after the copy";
    EXPECT_TRUE(regions.dirty(regions.primary(object)));
  });
}

TEST_F(RegionsTest, RateIsTheDeclaredOneUntilEnoughWasSeen) {
  Probe other{open_tiers({"dram:1MiB", "emulated:64MiB,read=4GB/s,write=1GB/s,latency=100ns"})};
  other.act([&](Regions& regions) { EXPECT_EQ(regions.rate(kFast, kMiddle).value, 1e9); });
}

TEST_F(RegionsTest, ManyThreadsReadOneObjectAndAWriterIsAlone) {
  write(manager, object, 0);
  std::uint64_t latest = 0;  // guarded by the pins themselves: the thread sanitizer watches
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        if (i % 10 == t) {
          const Pin pin = manager.pin(object, Access::write).value();
          fill(pin, ++latest);
        } else {
          const Pin pin = manager.pin(object, Access::read).value();
          EXPECT_EQ(first_difference(pin, latest), pin.size().count);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(latest, 80u);
}

}  // namespace
}  // namespace terrace

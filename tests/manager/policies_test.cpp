// SPDX-License-Identifier: Apache-2.0
// What each policy does with the same hints.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/contents.hpp"
#include "support/tiers.hpp"
#include "terrace/manager.hpp"

namespace terrace {
namespace {
using namespace literals;

constexpr TierId kFast{0}, kSlow{1};
constexpr Bytes kObject = 128_KiB;  // eight fill the fast tier

struct Rig {
  explicit Rig(std::string_view policy,
               std::initializer_list<std::string_view> specs = {"dram:1MiB", "dram:8MiB"})
      : manager(open_tiers(specs), make_policy(policy).value()) {}

  ObjectId create(std::uint64_t seed) {
    const ObjectId object = manager.create(kObject).value();
    seeds.emplace_back(object, seed);
    manager.will_write(object);
    write(manager, object, seed);
    return object;
  }
  std::vector<ObjectId> create_many(std::uint64_t count) {
    std::vector<ObjectId> objects;
    for (std::uint64_t i = 0; i < count; ++i) objects.push_back(create(i));
    return objects;
  }
  Bytes moved(TierId from, TierId to) { return manager.statistics().links[from.index][to.index].bytes; }
  void expect_intact() {
    for (const auto& [object, seed] : seeds) EXPECT_TRUE(holds(manager, object, seed)) << "object " << seed;
    EXPECT_TRUE(manager.validate().ok());
  }

  Manager manager;
  std::vector<std::pair<ObjectId, std::uint64_t>> seeds;
};

class EveryPolicy : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryPolicy, KeepsContentsFourTimesLargerThanFastMemory) {
  Rig rig(GetParam());
  rig.create_many(32);
  for (int sweep = 0; sweep < 3; ++sweep) {
    for (const auto& [object, seed] : rig.seeds) {
      rig.manager.will_read(object);
      EXPECT_TRUE(holds(rig.manager, object, seed));
      rig.manager.archive(object);
    }
    rig.manager.step_end();
  }
  rig.expect_intact();
  EXPECT_LE(rig.manager.statistics().tiers[0].peak, 1_MiB);
}

TEST_P(EveryPolicy, WorksOverABlockTier) {
  Rig rig(GetParam(), {"dram:1MiB", "fake:8MiB,blocks"});
  rig.create_many(32);
  rig.expect_intact();
}

TEST_P(EveryPolicy, WorksOverThreeTiersWithOnlyTheLastLargeEnough) {
  Rig rig(GetParam(), {"dram:512KiB", "dram:1MiB", "fake:8MiB,blocks"});
  rig.create_many(32);
  rig.expect_intact();
}

TEST_P(EveryPolicy, UsesNearlyAllMemoryOfAllTiersTogether) {
  Rig rig(GetParam(), {"dram:1MiB", "dram:2MiB"});
  rig.create_many(GetParam() == "none" || GetParam() == "all-slow" ? 16 : 22);  // of 24
  rig.expect_intact();
}

TEST_P(EveryPolicy, RefusesWhatNoTierCanHold) {
  Rig rig(GetParam());
  const auto huge = rig.manager.create(9_MiB);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, ErrorCode::too_large);
  EXPECT_NE(huge.error().message.find("larger than every tier"), std::string::npos);
  EXPECT_EQ(rig.manager.create(0_B).error().code, ErrorCode::invalid_argument);
}

TEST_P(EveryPolicy, SaysWhenEverythingIsFullAndRecovers) {
  Rig rig(GetParam(), {"dram:512KiB", "dram:512KiB"});
  std::vector<ObjectId> objects;
  while (true) {
    const auto object = rig.manager.create(kObject);
    if (!object) {
      EXPECT_EQ(object.error().code, ErrorCode::tier_full) << object.error().message;
      break;
    }
    objects.push_back(*object);
    ASSERT_LE(objects.size(), 8u);
  }
  rig.manager.destroy(objects.back());
  EXPECT_TRUE(rig.manager.create(kObject).ok());
}

TEST_P(EveryPolicy, RetiredObjectsAreRefusedAndTheirRoomComesBack) {
  Rig rig(GetParam());
  for (int i = 0; i < 500; ++i) {  // far more than all tiers hold together
    const ObjectId object = rig.create(i);
    rig.seeds.pop_back();
    rig.manager.retire(object);
    EXPECT_EQ(rig.manager.pin(object, Access::read).error().code, ErrorCode::retired);
  }
  rig.manager.step_end();
  EXPECT_EQ(rig.manager.statistics().objects, 0u);
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy, testing::ValuesIn(policy_names()), [](const auto& tested) {
  std::string name(tested.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(PolicyTable, UnknownNameListsTheKnownOnes) {
  const auto policy = make_policy("belady");
  ASSERT_FALSE(policy);
  EXPECT_NE(policy.error().message.find("async-LMP"), std::string::npos);
}

TEST(ModeNone, BeginsInSlowMemoryAndCopiesBeforeTheFirstWrite) {
  Rig rig("none");
  const ObjectId object = rig.manager.create(kObject).value();
  EXPECT_EQ(rig.manager.where(object), kSlow);
  rig.manager.will_write(object);
  EXPECT_EQ(rig.manager.where(object), kFast);
  EXPECT_EQ(rig.moved(kSlow, kFast), kObject);
}

TEST(ModeL, BeginsInFastMemoryAndCopiesNothing) {
  Rig rig("L");
  const ObjectId object = rig.create(1);
  EXPECT_EQ(rig.manager.where(object), kFast);
  EXPECT_EQ(rig.moved(kSlow, kFast), 0_B);
}

TEST(ModeL, DeadObjectsAreStillWrittenToSlowMemoryAndModeLMSparesThat) {
  const auto written = [](std::string_view policy) {
    Rig rig(policy);
    for (const ObjectId object : rig.create_many(8)) rig.manager.retire(object);
    rig.seeds.clear();
    rig.create_many(8);
    return rig.moved(kFast, kSlow);
  };
  EXPECT_EQ(written("L"), kObject * 8);
  EXPECT_EQ(written("LM"), 0_B);
}

TEST(ModeLM, ReadsInPlaceAndModeLMPPrefetches) {
  for (const auto& [policy, expected] : {std::pair{"LM", kSlow}, std::pair{"LMP", kFast}}) {
    Rig rig(policy);
    const ObjectId first = rig.create_many(12).front();
    ASSERT_EQ(rig.manager.where(first), kSlow);
    rig.manager.will_read(first);
    EXPECT_EQ(rig.manager.where(first), expected) << policy;
  }
}

TEST(ModeLM, ArchivedObjectsGoFirst) {
  Rig rig("LM");
  const auto objects = rig.create_many(8);
  rig.manager.archive(objects[5]);
  rig.create(99);
  EXPECT_EQ(rig.manager.where(objects[5]), kSlow);
  EXPECT_EQ(rig.manager.where(objects[0]), kFast);
}

TEST(ModeLM, ArchivingCostsNothingWhereEverythingFits) {
  Rig rig("LM");
  for (const ObjectId object : rig.create_many(8)) rig.manager.archive(object);
  EXPECT_EQ(rig.manager.statistics().copies, 0u);
}

TEST(FirstTouch, NeverMoves) {
  Rig rig("first-touch");
  const auto objects = rig.create_many(12);
  EXPECT_EQ(rig.manager.where(objects[7]), kFast);
  EXPECT_EQ(rig.manager.where(objects[8]), kSlow);
  rig.manager.will_use(objects[8]);
  rig.expect_intact();
  EXPECT_EQ(rig.manager.statistics().copies, 0u);
}

TEST(AllSlow, StaysInSlowMemory) {
  Rig rig("all-slow");
  for (const ObjectId object : rig.create_many(4)) EXPECT_EQ(rig.manager.where(object), kSlow);
}

TEST(Lru, EvictsTheLeastRecentlyUsed) {
  Rig rig("lru");
  const auto objects = rig.create_many(8);
  rig.manager.will_read(objects[0]);
  rig.manager.archive(objects[7]);  // ignored
  rig.create(99);
  EXPECT_EQ(rig.manager.where(objects[1]), kSlow);
  EXPECT_EQ(rig.manager.where(objects[0]), kFast);
  EXPECT_EQ(rig.manager.where(objects[7]), kFast);
}

TEST(AsyncLmp, WritesBackInAdvanceSoThatEvictionCopiesNothing) {
  Rig rig("async-LMP");
  const auto objects = rig.create_many(7);
  rig.manager.archive(objects[0]);
  rig.manager.archive(objects[1]);
  rig.manager.settle();
  EXPECT_EQ(rig.manager.where(objects[0]), kFast) << "written back, not yet given up";
  EXPECT_GE(rig.moved(kFast, kSlow), kObject);
  const std::uint64_t copies = rig.manager.statistics().copies;
  const ObjectId late = rig.manager.create(kObject * 2).value();
  EXPECT_EQ(rig.manager.where(late), kFast);
  EXPECT_GE(rig.manager.statistics().copies, copies);
  rig.expect_intact();
}

TEST(AsyncLmp, PrefetchesInTheBackground) {
  Rig rig("async-LMP", {"dram:1MiB", "fake:8MiB,blocks"});
  const auto objects = rig.create_many(16);
  for (const ObjectId object : objects) rig.manager.archive(object);
  rig.manager.settle();
  ASSERT_EQ(rig.manager.where(objects[0]), kSlow);
  as_fake(rig.manager.tier(kSlow)).delay(Seconds{0.005});
  rig.manager.will_read(objects[0]);
  EXPECT_EQ(rig.manager.where(objects[0]), kSlow) << "the hint does not wait";
  EXPECT_TRUE(holds(rig.manager, objects[0], 0));
  EXPECT_EQ(rig.manager.where(objects[0]), kFast);
}

}  // namespace
}  // namespace terrace

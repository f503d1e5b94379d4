// SPDX-License-Identifier: Apache-2.0
// What an observer is told adds up to what the manager has, and a rehearsal decides as real memory does.
#include <gtest/gtest.h>

#include <map>

#include "base/random.hpp"
#include "support/tiers.hpp"
#include "terrace/manager.hpp"
#include "tiers/described.hpp"

namespace terrace {
namespace {
using namespace literals;

/// Where every object has regions, by what it was told.
class Shadow final : public RegionObserver {
 public:
  void gained(ObjectId object, TierId tier, std::uint64_t offset) override {
    EXPECT_TRUE(regions.emplace(std::pair(object.index, tier.index), offset).second);
  }
  void lost(ObjectId object, TierId tier) override {
    EXPECT_EQ(regions.erase({object.index, tier.index}), 1U);
  }
  void copying(ObjectId object, TierId from, TierId to) override {
    EXPECT_TRUE(regions.count({object.index, from.index}) == 1);
    EXPECT_TRUE(regions.count({object.index, to.index}) == 1);
    ++copies;
  }
  void slid(ObjectId object, TierId tier, std::uint64_t offset) override {
    regions.at({object.index, tier.index}) = offset;
    ++slides;
  }

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> regions;
  std::uint64_t copies = 0, slides = 0;
};

enum class StepEnds { never, sometimes };

/// Objects that are made, used and retired at random, a third more than fast memory holds.
class Wandering {
 public:
  Wandering(Manager& manager, std::uint64_t seed, StepEnds ends)
      : manager_(manager), random_(seed), ends_(ends) {}

  void act() {
    const std::uint64_t what = random_.below(8);
    if (live.size() < 8 || (what == 0 && live.size() < 40)) {
      live.push_back(manager_.create(Bytes{1 + random_.below(16384)}).value());
    } else if (what == 1) {
      manager_.retire(live.back());
      live.pop_back();
    } else if (what == 2) {
      manager_.archive(any());
    } else if (what == 3 && ends_ == StepEnds::sometimes && random_.below(8) == 0) {
      manager_.step_end();
    } else {
      use(any(), random_.below(2) == 0 ? Access::read : Access::write);
    }
  }

  std::vector<ObjectId> live;

 private:
  ObjectId any() { return live[random_.below(live.size())]; }
  void use(ObjectId object, Access access) {
    if (access == Access::read) manager_.will_read(object);
    if (access == Access::write) manager_.will_write(object);
    (void)manager_.pin(object, access).value();
  }

  Manager& manager_;
  SplitMix random_;
  StepEnds ends_;
};

TEST(RegionObserver, IsToldAllThatHappensToRegions) {
  Shadow shadow;
  Manager manager(open_tiers({"dram:128KiB", "dram:4MiB"}), make_policy("LMP").value());
  manager.observe(&shadow);
  Wandering program(manager, 5, StepEnds::sometimes);
  for (int i = 0; i < 3000; ++i) {
    program.act();
    const ManagerStatistics now = manager.statistics();
    ASSERT_EQ(shadow.regions.size(), now.tiers[0].blocks_used + now.tiers[1].blocks_used);
    ASSERT_EQ(shadow.copies, now.copies);
    const ObjectId latest = program.live.back();
    const Pin pin = manager.pin(latest, Access::read).value();
    ASSERT_EQ(manager.tier(pin.tier()).memory() + shadow.regions.at({latest.index, pin.tier().index}),
              pin.data());
  }
  EXPECT_GT(shadow.copies, 100U);
  EXPECT_GT(shadow.slides, 10U);
}

TEST(RegionObserver, IsToldNoMoreWhenItIsTakenOff) {
  Shadow shadow;
  Manager manager(open_tiers({"dram:128KiB"}), make_policy("first-touch").value());
  manager.observe(&shadow);
  (void)manager.create(64_B).value();
  manager.observe(nullptr);
  (void)manager.create(64_B).value();
  EXPECT_EQ(shadow.regions.size(), 1U);
}

std::vector<std::unique_ptr<Tier>> described(const std::vector<std::unique_ptr<Tier>>& like) {
  std::vector<std::unique_ptr<Tier>> tiers;
  for (const auto& tier : like) tiers.push_back(std::make_unique<DescribedTier>(tier->description()));
  return tiers;
}

TEST(Rehearsal, DecidesAndCountsAsWithRealMemory) {
  MoverOptions rehearsal;
  rehearsal.rehearsal = true;
  for (const std::string_view policy : {"none", "L", "LM", "LMP", "lru"}) {
    auto tiers = open_tiers({"dram:128KiB", "fake:512KiB,blocks", "dram:4MiB"});
    Manager rehearsed(described(tiers), make_policy(policy).value(), rehearsal);
    Manager real(std::move(tiers), make_policy(policy).value());
    Wandering there(rehearsed, 9, StepEnds::never), here(real, 9, StepEnds::never);
    for (int i = 0; i < 1000; ++i) {
      there.act();
      here.act();
      ASSERT_EQ(rehearsed.where(there.live.back()), real.where(here.live.back())) << policy;
    }
    const ManagerStatistics a = rehearsed.statistics(), b = real.statistics();
    EXPECT_GT(a.copies, 10U) << policy;
    for (std::uint32_t from = 0; from < 3; ++from) {
      EXPECT_EQ(a.tiers[from].used, b.tiers[from].used) << policy;
      for (std::uint32_t to = 0; to < 3; ++to) EXPECT_EQ(a.links[from][to].bytes, b.links[from][to].bytes);
    }
    EXPECT_EQ(a.buffers, 0_B);
    EXPECT_TRUE(rehearsed.validate().ok());
  }
}

TEST(Rehearsal, LeavesRegionsWhereTheyAreWhenAStepEnds) {
  MoverOptions rehearsal;
  rehearsal.rehearsal = true;
  Shadow shadow;
  Manager manager(described(open_tiers({"dram:128KiB", "dram:4MiB"})), make_policy("LM").value(), rehearsal);
  manager.observe(&shadow);
  const ObjectId first = manager.create(64_B).value();
  const ObjectId second = manager.create(64_B).value();
  const std::uint64_t before = shadow.regions.at({second.index, 0});
  manager.retire(first);
  manager.step_end();
  EXPECT_EQ(shadow.regions.at({second.index, 0}), before);
  EXPECT_EQ(shadow.slides, 0U);
}

}  // namespace
}  // namespace terrace

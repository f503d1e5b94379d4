// SPDX-License-Identifier: Apache-2.0
// Which tensors live shortly, and which travel together (002 section 4.4.2).
#include <gtest/gtest.h>

#include <algorithm>

#include "planners/sentinel_rig.hpp"

namespace terrace::sentinel {
namespace {

using Names = std::vector<std::string>;
constexpr double kRate = 100 * static_cast<double>(kMega);

/// Four layers. `s` is over in the first; m1 and m2 are used by the first and the third, as are the weights
/// w1 and w2; c1 and c2 by the second and the fourth; `big` is used like m1 and m2.
Graph four_layers() {
  LayerGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId s1 = rig.made("s1", 512), s2 = rig.made("s2", 512);
  const TensorId m1 = rig.made("m1", 1000), m2 = rig.made("m2", 2000), big = rig.made("big", 2 * kMega);
  const TensorId c1 = rig.made("c1", 3000), c2 = rig.made("c2", 4000), d = rig.made("d", 640);
  const TensorId w1 = rig.kept("w1", 700), w2 = rig.kept("w2", 900);
  const TensorId y = rig.made("y", 64);
  rig.layer("make", {x, w1, w2}, {s1, s2});
  rig.join("use", {s1, s2}, {m1, m2, big});
  rig.layer("other", {x}, {c1, c2});
  rig.layer("back", {m1, m2, big, w1, w2}, {d}, Phase::backward);
  rig.join("again", {m2, d}, {d});
  rig.layer("last", {d, c1, c2}, {y}, Phase::backward);
  rig.graph.results = {y};
  return rig.graph;
}

class SentinelUnits : public testing::Test {
 protected:
  SentinelUnits()
      : step_(four_layers(), rig_machine(kRate, true)), request_(step_.request(kMega)), view_(request_) {}

  TensorId tensor(const std::string& name) const { return find_tensor(step_.graph, name); }
  Names unit_of(const Units& units, const std::string& name) const {
    Names names;
    for (const TensorId one : units.all[units.of[tensor(name).index]].tensors) {
      names.push_back(step_.graph[one].name);
    }
    return names;
  }

  Planned step_;
  PlanRequest request_;
  StepView view_;
};

TEST_F(SentinelUnits, CallsShortLivedWhatOneLayerMakesAndEnds) {
  for (const char* name : {"s1", "s2"}) EXPECT_TRUE(is_short_lived(view_, tensor(name))) << name;
  for (const char* name : {"x", "m1", "big", "c1", "d", "w1", "y"}) {
    EXPECT_FALSE(is_short_lived(view_, tensor(name))) << name;
  }
}

TEST_F(SentinelUnits, NeverSharesShortLivedTensorsWithOthers) {
  const Units units = make_units(view_, Grouping::small, ShortLived::apart);
  for (const Unit& unit : units.all) {
    for (const TensorId one : unit.tensors) EXPECT_EQ(unit.short_lived, is_short_lived(view_, one));
  }
}

TEST_F(SentinelUnits, GroupsWhatTheSameLayersUseTheMostAccessedFirst) {
  const Units units = make_units(view_, Grouping::small, ShortLived::apart);
  EXPECT_EQ(unit_of(units, "m1"), (Names{"m2", "m1"}));  // m2 is read twice
  EXPECT_EQ(unit_of(units, "c2"), (Names{"c1", "c2"}));
}

TEST_F(SentinelUnits, NeverSharesAUnitBetweenDifferentLayers) {
  const Units units = make_units(view_, Grouping::small, ShortLived::apart);
  EXPECT_EQ(unit_of(units, "d"), Names{"d"});
  for (const char* one : {"c1", "d", "y", "x"}) {
    EXPECT_NE(units.of[tensor("m1").index], units.of[tensor(one).index]) << one;
  }
}

TEST_F(SentinelUnits, KeepsWhatOutlivesStepsApart) {
  const Units units = make_units(view_, Grouping::small, ShortLived::apart);
  EXPECT_EQ(unit_of(units, "w1"), (Names{"w1", "w2"}));
  EXPECT_EQ(unit_of(units, "x"), Names{"x"});
}

TEST_F(SentinelUnits, LeavesLargeTensorsAlone) {
  const Units units = make_units(view_, Grouping::small, ShortLived::apart);
  EXPECT_EQ(unit_of(units, "big"), Names{"big"});
}

TEST_F(SentinelUnits, GroupsEverySizeButNoWeightsAsPublished) {
  const Units units = make_units(view_, Grouping::published, ShortLived::apart);
  EXPECT_EQ(unit_of(units, "big"), (Names{"m2", "m1", "big"}));
  EXPECT_EQ(unit_of(units, "w1"), Names{"w1"});
}

TEST_F(SentinelUnits, GroupsNothingWhereThatIsOff) {
  const Units units = make_units(view_, Grouping::off, ShortLived::apart);
  EXPECT_EQ(units.all.size(), step_.graph.tensors.size());
}

TEST_F(SentinelUnits, WantsRoomForShortLivedTensorsAndTheLargestOther) {
  const Units units = make_units(view_, Grouping::small, ShortLived::apart);
  EXPECT_EQ(least_fast_memory(view_, units), Bytes{2 * 512 + 2 * kMega});
}

TEST(SentinelHomes, GiveTheNearestTierToWhatIsUsedMost) {
  LayerGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId cold = rig.made("cold", kMega), hot = rig.made("hot", kMega), y = rig.made("y", 64);
  rig.layer("one", {x}, {cold, hot});
  rig.layer("two", {hot}, {y});
  rig.layer("three", {hot, cold, y}, {y});
  rig.graph.results = {y};
  Machine machine = rig_machine(kRate, true);
  machine.tiers.push_back(machine.tiers[1]);
  machine.tiers.back().name = "slowest";
  machine.links.push_back({{0}, {2}, machine.links[0].rates, 1, 0, 1});
  machine.links.push_back({{2}, {0}, machine.links[0].rates, 1, 0, 1});
  const Planned step(rig.graph, machine);
  const PlanRequest request{
      step.graph, step.machine, step.profile, {Bytes{kMega}, Bytes{kMega + 4096}, Bytes{64 * kMega}}};
  const StepView view(request);
  const Units units = make_units(view, Grouping::small, ShortLived::apart);
  EXPECT_EQ(units.all[units.of[hot.index]].backing_tier, TierId{1});
  EXPECT_EQ(units.all[units.of[cold.index]].backing_tier, TierId{2});
}

}  // namespace
}  // namespace terrace::sentinel

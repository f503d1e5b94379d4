// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "profile/operands.hpp"
#include "terrace/plan.hpp"
#include "terrace/profile.hpp"

namespace terrace {
namespace {

double estimated(const Graph& graph, const Machine& machine, std::size_t variant = 0) {
  return estimate(graph, machine).kernels[0].variants[variant][0].cold.count();
}

TEST(Estimate, IsArithmeticWhereThatTakesLonger) {
  EXPECT_DOUBLE_EQ(estimated(one_kernel({40}, {20}, 1000), two_tier_machine()), 10);
}

TEST(Estimate, IsTheSumOfAllReadingAndWritingWhereThatTakesLonger) {
  // 40 + 60 bytes read at 10 a second, 20 written at 5, and three operands to reach.
  Machine machine = two_tier_machine();
  machine.tiers[0].latency = Seconds{0.5};
  EXPECT_DOUBLE_EQ(estimated(one_kernel({40, 60}, {20}, 1000), machine), 10 + 4 + 1.5);
}

TEST(Estimate, CountsTheWorkspaceAsWrittenAndRead) {
  Graph graph = one_kernel({40}, {20}, 0);
  add_workspace(graph, 10);
  EXPECT_DOUBLE_EQ(estimated(graph, two_tier_machine()), 4 + 4 + 1 + 2);
}

TEST(Estimate, TakesTheGraphsOwnTimesInstead) {
  Graph graph = one_kernel({40}, {20}, 1000);
  graph.kernels[0].variants = {{"a", {}, Seconds{3}}, {"b", {}, {}}};
  EXPECT_DOUBLE_EQ(estimated(graph, two_tier_machine(), 0), 3);
  EXPECT_DOUBLE_EQ(estimated(graph, two_tier_machine(), 1), 10);
}

TEST(Estimate, NamesGraphAndMachineAndPlacesAllInTierZero) {
  const Graph graph = one_kernel({40}, {20}, 0);
  const Machine machine = two_tier_machine();
  const Profile profile = estimate(graph, machine);
  EXPECT_EQ(profile.graph, fingerprint(graph));
  EXPECT_EQ(profile.machine, fingerprint(machine));
  EXPECT_EQ(profile.kernels[0].variants[0][0].tiers, std::vector<TierId>(2));
}

TEST(Profile, IsMeasuredOnlyIfEveryVariantIs) {
  Graph graph = one_kernel({40}, {20}, 0);
  graph.kernels[0].variants = {{"a", {}, {}}, {"b", {}, {}}};
  Profile profile = estimate(graph, two_tier_machine());
  EXPECT_FALSE(profile.is_measured());
  profile.kernels[0].variants[0][0].samples = 3;
  EXPECT_FALSE(profile.is_measured());
  profile.kernels[0].variants[1][0].samples = 3;
  EXPECT_TRUE(profile.is_measured());
  PlacedTime elsewhere = profile.kernels[0].variants[0][0];
  elsewhere.samples = 0;
  profile.kernels[0].variants[0].push_back(elsewhere);
  EXPECT_TRUE(profile.is_measured()) << "tier 0 decides";
  EXPECT_FALSE(Profile{}.is_measured());
}

TEST(Profile, FingerprintChangesWithEveryFigure) {
  const Profile profile = estimate(one_kernel({40}, {20}, 0), two_tier_machine());
  const auto changed = [&](auto change) {
    Profile other = profile;
    change(other, other.kernels[0].variants[0][0]);
    return fingerprint(other) != fingerprint(profile);
  };
  EXPECT_EQ(fingerprint(profile), fingerprint(Profile(profile)));
  EXPECT_TRUE(changed([](Profile& all, PlacedTime&) { all.graph += "x"; }));
  EXPECT_TRUE(changed([](Profile& all, PlacedTime&) { all.machine += "x"; }));
  EXPECT_TRUE(changed([](Profile& all, PlacedTime&) { all.kernels.push_back(all.kernels[0]); }));
  EXPECT_TRUE(changed([](Profile& all, PlacedTime&) {
    auto& places = all.kernels[0].variants[0];
    places.push_back(PlacedTime(places[0]));
  }));
  EXPECT_TRUE(changed([](Profile&, PlacedTime& time) { time.cold += Seconds{1}; }));
  EXPECT_TRUE(changed([](Profile&, PlacedTime& time) { time.warm += Seconds{1}; }));
  EXPECT_TRUE(changed([](Profile&, PlacedTime& time) { time.spread += Seconds{1}; }));
  EXPECT_TRUE(changed([](Profile&, PlacedTime& time) { ++time.samples; }));
  EXPECT_TRUE(changed([](Profile&, PlacedTime& time) { time.tiers[1] = {1}; }));
  EXPECT_TRUE(changed([](Profile& all, PlacedTime&) { all.kernels[0].operands = {{1, 0, 1}, {0, 1, 1}}; }));
}

TEST(Profile, AnswersAccessesThatWereCountedElseWhatTheGraphSays) {
  Graph graph = one_kernel({40, 40}, {20}, 0);
  graph.kernels[0].outputs.push_back(graph.kernels[0].inputs[1]);
  graph.kernels[0].workspace = add_tensor(graph, 8);
  Profile profile = estimate(graph, two_tier_machine());
  const std::vector<Accesses> assumed{{1, 0}, {1, 1}, {0, 1}, {1, 1}, {1, 1}};
  for (std::size_t i = 0; i < assumed.size(); ++i) {
    EXPECT_EQ(assumed_accesses(graph, {0}, i), assumed[i]) << i;
    EXPECT_EQ(accesses(graph, profile, {0}, i), assumed[i]) << i;
  }
  profile.kernels[0].operands = {{3, 0, 10}, {9, 9, 0}, {0, 2, 5}, {1, 1, 1}, {2, 2, 2}};
  EXPECT_EQ(accesses(graph, profile, {0}, 0), (Accesses{3, 0, 10}));
  EXPECT_EQ(accesses(graph, profile, {0}, 1), assumed[1]) << "no page of it was watched";
  EXPECT_EQ(accesses(graph, profile, {0}, 4), (Accesses{2, 2, 2}));
  EXPECT_THROW(accesses(graph, profile, {0}, 5), std::logic_error);
  EXPECT_THROW(accesses(graph, profile, {1}, 0), std::logic_error);
}

}  // namespace
}  // namespace terrace

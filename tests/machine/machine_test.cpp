// SPDX-License-Identifier: Apache-2.0
#include "terrace/machine.hpp"

#include <gtest/gtest.h>

#include <set>

#include "machine/machines.hpp"

namespace terrace {
namespace {

using namespace literals;

Link link_with(std::vector<SizedRate> rates) { return {TierId{0}, TierId{1}, std::move(rates)}; }
double time(const Link& link, std::uint64_t size) { return link.time(Bytes{size}).count(); }

TEST(LinkTime, IsExactAtMeasuredSizes) {
  const Link link = link_with({{1000_B, {100}}, {4000_B, {200}}});
  EXPECT_DOUBLE_EQ(time(link, 1000), 10);
  EXPECT_DOUBLE_EQ(time(link, 4000), 20);
}

TEST(LinkTime, InterpolatesTimeAndNotRate) {
  const Link link = link_with({{1000_B, {100}}, {4000_B, {200}}, {8000_B, {400}}});
  EXPECT_DOUBLE_EQ(time(link, 2500), 15);
  EXPECT_DOUBLE_EQ(time(link, 6000), 20);
}

TEST(LinkTime, KeepsTheLargestRateAboveIt) {
  const Link link = link_with({{1000_B, {100}}, {4000_B, {200}}});
  EXPECT_DOUBLE_EQ(time(link, 40'000), 200);
}

TEST(LinkTime, KeepsTheCostOfEveryTransferBelowTheSmallestSize) {
  // Seven seconds and one more for every 300 bytes.
  const Link link = link_with({{900_B, {90}}, {3900_B, {3900.0 / 20}}});
  EXPECT_DOUBLE_EQ(time(link, 900), 10);
  EXPECT_DOUBLE_EQ(time(link, 300), 8);
  EXPECT_DOUBLE_EQ(time(link, 0), 7);
}

TEST(LinkTime, NeverExtrapolatesBelowNothingOrAboveTheSmallest) {
  // Twice the bytes take more than twice as long: there is no fixed cost to be found.
  const Link slower = link_with({{1000_B, {100}}, {2000_B, {20}}});
  EXPECT_DOUBLE_EQ(time(slower, 500), 5);
  // Noise: the larger transfer took less time.
  const Link quicker = link_with({{1000_B, {100}}, {2000_B, {2000}}});
  EXPECT_DOUBLE_EQ(time(quicker, 500), 10);
}

TEST(LinkTime, IsInProportionWithOneRate) {
  const Link link = link_with({{1000_B, {100}}});
  EXPECT_DOUBLE_EQ(time(link, 10), 0.1);
  EXPECT_DOUBLE_EQ(time(link, 5000), 50);
  EXPECT_THROW(static_cast<void>(link_with({}).time(1_B)), std::logic_error);
}

TEST(Machine, FindsTheLinkOfADirection) {
  Machine machine = test::small_machine();
  EXPECT_EQ(machine.link(TierId{1}, TierId{0}), &machine.links[1]);
  EXPECT_EQ(machine.link(TierId{0}, TierId{0}), nullptr);
  machine.links.pop_back();
  EXPECT_EQ(machine.link(TierId{1}, TierId{0}), nullptr);
}

TEST(Machine, LinksBothWaysWhereEachDirectionHasALink) {
  Machine machine = test::small_machine();
  EXPECT_TRUE(machine.is_linked_both_ways({0}, {1}));
  EXPECT_TRUE(machine.is_linked_both_ways({1}, {0}));
  machine.links.pop_back();
  EXPECT_FALSE(machine.is_linked_both_ways({0}, {1})) << "nothing comes back";
  EXPECT_FALSE(machine.is_linked_both_ways({1}, {0})) << "nothing gets there";
}

TEST(Machine, HasOneEngineUnlessMoreAreGiven) {
  Machine machine = test::small_machine();
  EXPECT_EQ(machine.engine_count(), 1U);
  EXPECT_EQ(machine.compute_of({0}).name, "a processor");
  EXPECT_TRUE(machine.reaches({0}, {0}));
  EXPECT_FALSE(machine.reaches({0}, {1})) << "it is not addressable";
  EXPECT_FALSE(machine.is_reached({1}));
  machine.further_engines = {{{"beside", 1, 2e9, {}}, {{1}}}};
  EXPECT_EQ(machine.engine_count(), 2U);
  EXPECT_EQ(machine.compute_of({1}).name, "beside");
  EXPECT_FALSE(machine.reaches({1}, {0}));
  EXPECT_TRUE(machine.reaches({1}, {1}));
  EXPECT_TRUE(machine.is_reached({1}));
}

TEST(Machine, HasTheRateOfSinglePrecisionForTypesWithoutTheirOwn) {
  const Compute compute{"any", 1, 100, {{DataType::bf16, 400}, {DataType::f64, 50}}};
  EXPECT_EQ(compute.rate(DataType::f32), 100);
  EXPECT_EQ(compute.rate(DataType::bf16), 400);
  EXPECT_EQ(compute.rate(DataType::f64), 50);
  EXPECT_EQ(compute.rate(DataType::f16), 100);
}

TEST(Fingerprint, IsThatOfBuildsThatKnewOneEngineAlone) {
  EXPECT_EQ(fingerprint(test::small_machine()), "89586ae8d3dae61c");
}

TEST(Fingerprint, ChangesWithEveryFigure) {
  std::vector<Machine> machines(21, test::small_machine());
  for (std::size_t i = 18; i < machines.size(); ++i)
    machines[i].further_engines = {{{"beside", 1, 2e9, {}}, {{0}}}};
  machines[17].compute.by_type = {{DataType::bf16, 2e11}};
  machines[19].further_engines[0].reaches.push_back({1});
  machines[20].further_engines[0].compute.threads = 2;
  machines[1].tiers[0].capacity += 4_KiB;
  machines[2].tiers[0].read.value += 1;
  machines[3].tiers[0].write.value += 1;
  machines[4].tiers[0].latency *= 2;
  machines[5].tiers[1].granularity = 4_KiB;
  machines[6].tiers[1].addressable = true;
  machines[7].tiers[0].price.reset();
  machines[8].links[0].rates[0].rate.value += 1;
  machines[9].links[0].rates[0].size += 1_B;
  machines[10].links[0].both_ways = 0.7;
  machines[11].links[0].compute_loss = 0.26;
  machines[12].links[0].threads = 2;
  machines[13].links.pop_back();
  machines[14].compute.flops_per_second += 1;
  machines[15].compute.threads = 3;
  machines[16].links[0].while_computing = 0.9;
  std::set<std::string> seen;
  for (const Machine& machine : machines) seen.insert(fingerprint(machine));
  EXPECT_EQ(seen.size(), machines.size());
}

TEST(Fingerprint, StaysWithOtherWords) {
  Machine other = test::small_machine();
  other.name = "other";
  other.source = "elsewhere";
  other.tiers[1].spec = "file:/mnt/spill:200GiB";
  EXPECT_EQ(fingerprint(other), fingerprint(test::small_machine()));
}

}  // namespace
}  // namespace terrace

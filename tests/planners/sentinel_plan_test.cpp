// SPDX-License-Identifier: Apache-2.0
// What plans of Sentinel do on steps where it can be said beforehand, and what its options change.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "migration/units.hpp"
#include "planners/sentinel_rig.hpp"
#include "support/long_tests.hpp"
#include "support/random_graph.hpp"
#include "support/random_machine.hpp"
#include "terrace/lifetimes.hpp"
#include "terrace/verify.hpp"

namespace terrace {
namespace {

using Names = std::set<std::string>;
using sentinel::Case;
constexpr double kFastLink = 100 * static_cast<double>(kMega), kSlowLink = 0.1 * static_cast<double>(kMega);

Plan planned(const PlanRequest& request) {
  auto plan = make_plan("sentinel+", request);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  if (!plan) return {};
  const auto found = violations(request.graph, request.machine, *plan);
  EXPECT_TRUE(found.empty()) << to_text(found[0], request.graph, request.machine, *plan);
  return *plan;
}

/// Sixteen small tensors are made first and used last; large ones in between need their room.
Graph small_ones_between_large_ones() {
  LayerGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  std::vector<TensorId> small;
  for (int i = 0; i < 16; ++i) small.push_back(rig.made("small" + std::to_string(i), 4096));
  rig.layer("first", {x}, small);
  TensorId large = x;
  for (int i = 0; i < 6; ++i) {
    const TensorId next = rig.made("large" + std::to_string(i), kMega);
    rig.layer("middle" + std::to_string(i), {large}, {next});
    large = next;
  }
  small.push_back(large);
  const TensorId y = rig.made("y", 64);
  rig.layer("last", small, {y}, Phase::backward);
  rig.graph.results = {y};
  return rig.graph;
}

TEST(SentinelPlan, MovesAGroupAsOneTransfer) {
  const Planned step(small_ones_between_large_ones(), rig_machine(kFastLink, false));
  const PlanRequest request = step.request(2 * kMega + 8 * 4096);
  const Plan together = planned(request), apart = planned(with(request, "grouping", "off"));
  EXPECT_EQ(copied(step, together, {0}).size(), 16U);
  EXPECT_EQ(copies(together, {0}), 1U);
  EXPECT_EQ(copies(together, {1}), 1U);
  EXPECT_EQ(copies(apart, {0}), copied(step, apart, {0}).size());
  EXPECT_GT(copies(apart, {0}), 1U);
}

TEST(SentinelPlan, HidesWhatALinkCanCarryInTime) {
  const Planned step(rig_chain(8), rig_machine(kFastLink, false));
  const Plan plan = planned(step.request(6 * kMega));
  EXPECT_FALSE(copied(step, plan, {0}).empty());
  EXPECT_NEAR(plan.prediction.step.count(), 16, 1e-6);
}

TEST(SentinelPlan, NeverMovesShortLivedTensors) {
  LayerGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId a = rig.made("a", kMega), b = rig.made("b", kMega), y = rig.made("y", 64);
  std::vector<TensorId> kept{rig.made("z", 64)};
  rig.layer("first", {x}, {a, b, kept[0]});
  for (int i = 0; i < 4; ++i) {
    const TensorId scratch = rig.made("scratch" + std::to_string(i), kMega),
                   next = rig.made("n" + std::to_string(i), 64);
    rig.layer("make" + std::to_string(i), {kept.back()}, {scratch});
    rig.join("use" + std::to_string(i), {scratch}, {next});
    kept.push_back(next);
  }
  rig.layer("last", {a, b, kept.back()}, {y}, Phase::backward);
  rig.graph.results = {y};
  const Planned step(rig.graph, rig_machine(kFastLink, false));
  const Plan plan = planned(step.request(2 * kMega + 4096));
  Names moved = copied(step, plan, {0});
  moved.merge(copied(step, plan, {1}));
  EXPECT_FALSE(moved.empty());
  for (const std::string& name : moved) EXPECT_EQ(name.find("scratch"), std::string::npos) << name;
}

/// Where short-lived tensors have no reserve, those that keep a place through a gap are there first.
TEST(SentinelPlan, SendsShortLivedTensorsToSlowMemoryWithoutAReserve) {
  LayerGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId a = rig.made("a", 2 * kMega), z = rig.made("z", 64), y = rig.made("y", 64);
  const TensorId scratch = rig.made("scratch", kMega);
  rig.layer("first", {x}, {a});
  rig.layer("make", {x}, {scratch});
  rig.join("use", {scratch}, {z});
  rig.layer("last", {a, z}, {y}, Phase::backward);
  rig.graph.results = {y};
  const Planned step(rig.graph, rig_machine(kSlowLink, true));
  const PlanRequest request = with(step.request(2 * kMega + 4096), "end", "wait");
  EXPECT_EQ(used_in_place(step, planned(request)).count("scratch"), 0U);
  EXPECT_EQ(used_in_place(step, planned(with(request, "reserve", "off"))).count("scratch"), 1U);
}

/// The regions that exist in fast memory at each instruction, by where they begin.
template <class Visit>
void for_each_moment(const Planned& step, const Plan& plan, const Visit& visit) {
  std::map<std::uint64_t, TensorId> regions;
  const auto make = [&](const Alloc& region) {
    if (region.tier == TierId{0} && step.graph[region.tensor].bytes.count > 0)
      regions[region.offset] = region.tensor;
  };
  for (const Alloc& region : plan.start) make(region);
  for (const Instruction& instruction : plan.instructions) {
    if (const auto* region = std::get_if<Alloc>(&instruction)) make(*region);
    if (const auto* gone = std::get_if<Free>(&instruction); gone != nullptr && gone->tier == TierId{0})
      std::erase_if(regions, [&](const auto& region) { return region.second == gone->tensor; });
    visit(regions);
  }
}

/// A step with much that is short-lived between tensors that are kept for backward, of sizes by chance.
Graph scratch_between_kept(std::uint64_t seed) {
  constexpr int kLayers = 12;
  std::mt19937_64 random(seed);
  const auto size = [&] { return kMega / 8 * (1 + random() % 8); };
  LayerGraph rig;
  std::vector<TensorId> kept{rig.tensor("x", 4096, TensorKind::input)};
  for (int i = 0; i < kLayers; ++i) {
    const std::string name = std::to_string(i);
    const TensorId wide = rig.made("wide" + name, size()), narrow = rig.made("narrow" + name, size());
    kept.push_back(rig.made("kept" + name, size()));
    rig.layer("make" + name, {kept[kept.size() - 2]}, {wide});
    rig.join("more" + name, {wide}, {narrow});
    rig.join("use" + name, {wide, narrow}, {kept.back()});
  }
  TensorId gradient = kept.back();
  for (int i = kLayers; i-- > 0;) {
    const TensorId next = rig.made("gradient" + std::to_string(i), size());
    rig.layer("back" + std::to_string(i), {gradient, kept[static_cast<std::size_t>(i)]}, {next},
              Phase::backward);
    gradient = next;
  }
  rig.graph.results = {gradient};
  return rig.graph;
}

/// Counts the moments at which a tensor of another kind lies between or above short-lived ones.
std::size_t moments_with_others_in_the_reserve(const Planned& step, const PlanRequest& request,
                                               const Plan& plan) {
  const migration::StepView view(request);
  std::size_t count = 0;
  for_each_moment(step, plan, [&](const std::map<std::uint64_t, TensorId>& regions) {
    bool reserve = false, other = false;
    for (const auto& [offset, tensor] : regions) {
      const bool is_short = migration::is_short_lived(view, tensor);
      other = other || (reserve && !is_short);
      reserve = reserve || is_short;
    }
    count += other ? 1 : 0;
  });
  return count;
}

TEST(SentinelPlan, KeepsShortLivedTensorsSideBySideInAContiguousReserve) {
  std::size_t anywhere = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Planned step(scratch_between_kept(seed), rig_machine(kFastLink, true));
    const PlanRequest request = step.request(Lifetimes(step.graph).peak_bytes().count * 6 / 10);
    const Plan contiguous = planned(with(request, "reserve", "contiguous"));
    EXPECT_EQ(moments_with_others_in_the_reserve(step, request, contiguous), 0U) << seed;
    anywhere += moments_with_others_in_the_reserve(step, request, planned(request));
  }
  EXPECT_GT(anywhere, 0U) << "the steps show no difference";
}

std::vector<Case> cases_of(const PlanRequest& request) {
  const auto examined = sentinel::examine(request);
  EXPECT_TRUE(examined.ok());
  return examined ? examined->cases : std::vector<Case>{};
}

std::ptrdiff_t count(const std::vector<Case>& cases, Case which) {
  return std::count(cases.begin(), cases.end(), which);
}

TEST(SentinelPlan, BeginsIntervalsWithAllAtHandWhereTheLinkIsFast) {
  const Planned step(rig_chain(8), rig_machine(kFastLink, false));
  const auto cases = cases_of(with(step.request(6 * kMega), "interval", "1"));
  EXPECT_EQ(cases.size(), 17U);
  EXPECT_EQ(count(cases, Case::done), 17);
}

TEST(SentinelPlan, BeginsIntervalsBeforeAllIsThereWhereTheLinkIsSlow) {
  const Planned step(rig_chain(8), rig_machine(kSlowLink, false));
  const auto cases = cases_of(with(step.request(6 * kMega), "interval", "1"));
  EXPECT_GT(count(cases, Case::no_time), 0);
}

/// Backward, an interval of four layers needs more than is free before it begins.
TEST(SentinelPlan, BeginsIntervalsWithoutRoomForTheirTensorsWhereTheyAreLong) {
  const Planned step(rig_chain(16), rig_machine(kFastLink, false));
  const PlanRequest request = step.request(4 * kMega + 4096);
  EXPECT_GT(count(cases_of(with(request, "interval", "4")), Case::no_room), 0);
  EXPECT_EQ(count(cases_of(with(request, "interval", "1")), Case::no_room), 0);
}

/// Kernels of a second, transfers of ten, and as long to use a megabyte in slow memory.
TEST(SentinelPlan, WaitsForLateTensorsOrLeavesThem) {
  const Planned step(rig_chain(8), rig_machine(kSlowLink, true));
  const PlanRequest request = with(with(step.request(6 * kMega), "in_place", "off"), "interval", "1");
  const Plan waits = planned(with(request, "end", "wait")), leaves = planned(with(request, "end", "leave"));
  EXPECT_TRUE(used_in_place(step, waits).empty());
  EXPECT_FALSE(copied(step, waits, {1}).empty());
  EXPECT_FALSE(used_in_place(step, leaves).empty());
  EXPECT_LT(copies(leaves, {1}), copies(waits, {1}));
}

TEST(SentinelPlan, LeavesOnlyInTheIntervalsThatAreNamed) {
  const Planned step(rig_chain(8), rig_machine(kSlowLink, true));
  const PlanRequest request = with(with(step.request(6 * kMega), "in_place", "off"), "interval", "1");
  const auto cases = cases_of(with(request, "end", "wait"));
  const auto late = std::find(cases.begin(), cases.end(), Case::no_time);
  ASSERT_NE(late, cases.end());
  const Plan plan = planned(with(request, "end", "leave:" + std::to_string(late - cases.begin())));
  EXPECT_EQ(used_in_place(step, plan).size(), 1U);
}

TEST(SentinelPlan, PredictsWhichAnswerIsFaster) {
  const Planned step(rig_chain(8), rig_machine(kSlowLink, true));
  const PlanRequest request = with(step.request(6 * kMega), "in_place", "off");
  const Seconds trial = planned(request).prediction.step;
  EXPECT_LE(trial, planned(with(request, "end", "wait")).prediction.step);
  EXPECT_LE(trial, planned(with(request, "end", "leave")).prediction.step);
}

TEST(SentinelPlan, WaitsWhereKernelsCannotUseSlowMemory) {
  const Planned step(rig_chain(8), rig_machine(kSlowLink, false));
  const PlanRequest request = step.request(6 * kMega);
  EXPECT_TRUE(planned(with(request, "end", "leave")) == planned(with(request, "end", "wait")));
}

TEST(SentinelPlan, UsesInSlowMemoryWhatLosesNothingThere) {
  const Planned step(rig_chain(8), rig_machine(kFastLink, true));
  const PlanRequest request = step.request(6 * kMega);
  const Plan in_place = planned(request),
             moves = planned(with(with(request, "in_place", "off"), "end", "wait"));
  EXPECT_EQ(copies(in_place, {0}) + copies(in_place, {1}), 0U);
  EXPECT_FALSE(used_in_place(step, in_place).empty());
  EXPECT_TRUE(used_in_place(step, moves).empty());
  EXPECT_NEAR(in_place.prediction.step.count(), 16, 1e-6);
}

/// `hot` is made last and used three times, `cold` is used once, by the same kernel first.
Graph two_for_one_interval() {
  LayerGraph rig;
  const TensorId x = rig.tensor("x", 64, TensorKind::input);
  const TensorId cold = rig.made("cold", kMega), hot = rig.made("hot", kMega);
  const TensorId large = rig.made("large", 4 * kMega), z = rig.made("z", 64), y = rig.made("y", 64);
  rig.layer("first", {x}, {cold, hot});
  rig.layer("second", {x}, {large});
  rig.layer("third", {large}, {z});
  rig.layer("pause", {z}, {z});
  rig.layer("fourth", {cold, z}, {y}, Phase::backward);
  rig.join("fifth", {hot, y}, {y});
  rig.join("sixth", {hot, y}, {y});
  rig.graph.results = {y};
  return rig.graph;
}

TEST(SentinelPlan, FetchesTheMostAccessedFirst) {
  const Planned step(two_for_one_interval(), rig_machine(kFastLink, false));
  const PlanRequest request = with(step.request(4 * kMega + 4096), "interval", "1");
  const auto first_fetched = [&](const Plan& plan) -> std::string {
    for (const Instruction& instruction : plan.instructions) {
      const auto* copy = std::get_if<Copy>(&instruction);
      if (copy != nullptr && copy->from == TierId{1}) return step.graph[copy->tensors[0]].name;
    }
    return {};
  };
  EXPECT_EQ(first_fetched(planned(request)), "hot");
  EXPECT_EQ(first_fetched(planned(with(request, "order", "use"))), "cold");
}

TEST(SentinelPlan, RefusesBelowItsLeastAndNamesIt) {
  const Planned step(small_ones_between_large_ones(), rig_machine(kFastLink, true));
  const PlanRequest request = step.request(kMega / 2);
  EXPECT_TRUE(make_plan("sentinel+", request).ok());
  const auto refused = make_plan("sentinel+", with(request, "below", "refuse"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.error().message,
      "sentinel wants 1.00 MiB of fast memory, for short-lived tensors and the largest other, and 512.00 "
      "KiB is given: 512.00 KiB are missing");
  EXPECT_EQ(sentinel::examine(request)->least, Bytes{kMega});
}

TEST(SentinelPlan, SaysWhichOptionsAndValuesThereAre) {
  const Planned step(rig_chain(3), rig_machine(kFastLink, true));
  const auto complaint = [&](const std::string& option, const std::string& value) {
    const auto plan = make_plan("sentinel+", with(step.request(8 * kMega), option, value));
    return plan ? std::string() : plan.error().message;
  };
  EXPECT_EQ(complaint("intervall", "8"), "sentinel has no option intervall: take interval or intervals");
  EXPECT_EQ(complaint("interval", "0"), "interval is auto or a number of layers such as 8, and '0' is given");
  EXPECT_EQ(complaint("intervals", "some"), "intervals is unequal or equal, and 'some' is given");
  EXPECT_EQ(complaint("reserve", "yes"), "reserve is contiguous, on or off, and 'yes' is given");
  EXPECT_EQ(complaint("grouping", ""), "grouping is published, small or off, and '' is given");
  EXPECT_EQ(complaint("end", "leave:1,"),
            "end is trial, wait, leave or a list of intervals such as leave:3,7, and 'leave:1,' is given");
  EXPECT_EQ(complaint("order", "size"), "order is accesses or use, and 'size' is given");
  EXPECT_EQ(complaint("in_place", "no"), "in_place is on or off, and 'no' is given");
  EXPECT_EQ(complaint("evict", "late"), "evict is room or use, and 'late' is given");
  EXPECT_EQ(complaint("below", "fail"), "below is refuse or plan, and 'fail' is given");
  EXPECT_EQ(complaint("end", "leave:1,4"), "");
}

TEST(SentinelPlan, IsSafeWithEveryOption) {
  const std::pair<const char*, const char*> options[] = {
      {"interval", "1"},        {"interval", "3"},   {"intervals", "equal"}, {"reserve", "off"},
      {"grouping", "off"},      {"end", "wait"},     {"end", "leave"},       {"end", "leave:1,3"},
      {"order", "use"},         {"in_place", "off"}, {"evict", "use"},       {"reserve", "contiguous"},
      {"grouping", "published"}};
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(6, 16); ++seed) {
    RandomGraphOptions sizes;
    sizes.kernels = 24;
    const Planned step(random_graph(sizes, seed), random_machine(seed));
    const Bytes least = least_budget(step.graph, step.machine).bytes,
                peak = Lifetimes(step.graph).peak_bytes();
    const PlanRequest request = step.request(std::max(least.count, peak.count * (seed % 4 + 2) / 6));
    for (const auto& [option, value] : options) {
      SCOPED_TRACE(std::to_string(seed) + " " + option + "=" + value);
      planned(with(request, option, value));
    }
  }
}

TEST(SentinelPlan, IsNoSlowerWithUnequalIntervals) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    RandomGraphOptions sizes;
    sizes.kernels = 40;
    const Planned step(random_graph(sizes, seed), random_machine(seed));
    const PlanRequest request = step.request(std::max(least_budget(step.graph, step.machine).bytes.count,
                                                      Lifetimes(step.graph).peak_bytes().count / 2));
    const auto unequal = make_plan("sentinel+", request),
               equal = make_plan("sentinel+", with(request, "intervals", "equal"));
    ASSERT_TRUE(unequal.ok() && equal.ok());
    EXPECT_LE(unequal->prediction.step, equal->prediction.step) << seed;
  }
}

/// With room for everything nothing has to leave, but after its use everything does.
TEST(SentinelPlan, EvictsAfterUseThoughThereIsRoom) {
  const Planned step(rig_chain(8), rig_machine(kFastLink, false));
  const PlanRequest request = step.request(64 * kMega);
  EXPECT_TRUE(copied(step, planned(request), {0}).empty());
  EXPECT_FALSE(copied(step, planned(with(with(request, "evict", "use"), "interval", "1")), {0}).empty());
}

TEST(SentinelPlan, AsPublishedHasItsOwnValuesAndTakesOthers) {
  int different = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    RandomGraphOptions sizes;
    sizes.kernels = 40;
    const Planned step(random_graph(sizes, seed), random_machine(seed));
    const PlanRequest request = step.request(std::max(least_budget(step.graph, step.machine).bytes.count,
                                                      Lifetimes(step.graph).peak_bytes().count / 2));
    const auto instructions = [&](const char* planner) {
      const auto plan = make_plan(planner, request);
      EXPECT_TRUE(plan.ok() && plan->planner == planner) << planner;
      return plan ? plan->instructions : std::vector<Instruction>{};
    };
    const auto published = instructions("sentinel"), extended = instructions("sentinel+");
    EXPECT_TRUE(published == instructions("sentinel++in_place=off+intervals=equal")) << seed;
    EXPECT_TRUE(extended == instructions("sentinel+in_place=on+intervals=unequal")) << seed;
    different += published == extended ? 0 : 1;
  }
  EXPECT_GT(different, 0);
}

TEST(SentinelPlan, PlansTenThousandKernels) {
  const Planned step(rig_chain(5000), rig_machine(kFastLink, false));
  const Plan plan = planned(step.request(1000 * kMega));
  EXPECT_EQ(runs(plan), 10000U);
  EXPECT_LT(plan.instructions.size(), 80000U);
  EXPECT_NEAR(plan.prediction.step.count(), 10000, 1);
}

}  // namespace
}  // namespace terrace

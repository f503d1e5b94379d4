// SPDX-License-Identifier: Apache-2.0
#include "planners/shadow_prices.hpp"

#include <gtest/gtest.h>

#include "autotm/rig.hpp"
#include "bounds/curve.hpp"
#include "planners/autotm/solver/fast.hpp"
#include "planners/baseline_rig.hpp"
#include "support/long_tests.hpp"

namespace terrace {
namespace {

using autotm::Formulation;

constexpr double kGigabyte = 1e9;

autotm::FastOptions patient() {
  autotm::FastOptions options;
  options.gap = 0;
  options.iterations = 4000;
  return options;
}

/// Nested lives: a megabyte less means that one more megabyte goes out and comes back. The links have more to
/// do than the kernels of either half of the step.
TEST(ShadowPrices, OfMemoryAreWhatMovingAMegabyteTakes) {
  const Planned planned(rig_chain(8), rig_machine(kMega / 8.0, false));
  const auto worth = memory_worth(planned.request(6 * kMega), "prefetch", PricedBy::moving_plan).value();
  EXPECT_NEAR(worth.seconds_per_gigabyte / kGigabyte * kMega, 2 * 8, 0.8);
}

TEST(ShadowPrices, OfMemoryAreNothingWhereEverythingFits) {
  const Planned planned(rig_chain(8), rig_machine(kMega / 8.0, true));
  const PlanRequest request = planned.request(20 * kMega);
  for (const char* planner : {"autotm-static", "autotm-sync", "autotm-async"})
    EXPECT_NEAR(memory_worth(request, planner, PricedBy::program).value().seconds_per_gigabyte, 0, 1e-9);
  for (const PricedBy by : {PricedBy::moving_plan, PricedBy::any_plan})
    EXPECT_NEAR(memory_worth(request, "best", by).value().seconds_per_gigabyte, 0, 1e-9);
}

TEST(ShadowPrices, OfMemoryAreOfTheProblemThatThePlanSolves) {
  const Planned linked(rig_chain(8), rig_machine(kMega, false)),
      addressable(rig_chain(8), rig_machine(kMega, true));
  const PlanRequest there = linked.request(6 * kMega), in_place = addressable.request(6 * kMega);
  Plan plan = make_plan("autotm-sync", there).value();
  EXPECT_EQ(priced_by(in_place, plan, "autotm-sync+gap=0.1"), PricedBy::program);
  EXPECT_EQ(priced_by(there, plan, "autotm-sync"), PricedBy::moving_plan)
      << "the program has no prices there";
  EXPECT_EQ(priced_by(in_place, plan, "best"), PricedBy::moving_plan);
  plan.instructions.push_back(terrace::Run{KernelId{0}, 0, {}});
  EXPECT_EQ(priced_by(in_place, plan, "best"), PricedBy::any_plan);
}

/// Of AutoTM's problem with another capacity: the relaxed time is not below the first nor above the second.
struct Relaxed {
  double bound, time;
};

std::optional<Relaxed> relaxed(autotm::Instance instance, Bytes capacity) {
  instance.capacity = capacity;
  const auto solved = solve_fast(instance, patient());
  if (!solved) return std::nullopt;
  return Relaxed{solved->bound.count(), solved->time.count()};
}

/// Convex: the slope lies between those to either side, up to what the bounds may be short of the best.
TEST(ShadowPrices, OfAProgramsMemoryAreTheSlopeOfItsBound) {
  constexpr double kShort = 0.004;
  const std::pair<const char*, Formulation> planners[] = {{"autotm-static", Formulation::fixed},
                                                          {"autotm-sync", Formulation::synchronous},
                                                          {"autotm-async", Formulation::asynchronous}};
  int compared = 0;
  const auto cases = few_or_all<std::uint64_t>(25, 60);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const autotm::Problem problem(seed, 10);
    const PlanRequest request = problem.request();
    if (!request.machine.tiers[1].addressable) continue;
    for (const auto& [planner, formulation] : planners) {
      SCOPED_TRACE(std::string(planner) + " " + std::to_string(seed));
      const auto worth = memory_worth(request, planner, PricedBy::program);
      if (!worth) continue;
      const Bytes capacity = request.budget[0], step = capacity / 4;
      const auto instance = make_instance(request, formulation, capacity).value();
      const double change = static_cast<double>(step.count) * worth->seconds_per_gigabyte / kGigabyte;
      const double bound = worth->bound.count(), rounding = bound * kShort;
      if (const auto more = relaxed(instance, capacity + step)) {
        EXPECT_GE(more->time * (1 + 1e-9), bound - change) << "weak duality";
        EXPECT_GE(change, bound - more->bound - rounding);
      }
      if (const auto less = relaxed(instance, capacity - step)) {
        EXPECT_GE(less->time * (1 + 1e-9), bound + change) << "weak duality";
        EXPECT_LE(change, less->bound - bound + rounding);
        compared += change > 10 * rounding;
      }
    }
  }
  EXPECT_GT(compared, few_or_all(8, 20)) << "hardly any case in which memory is worth something";
}

/// Tensors of which many fit, so that a little memory changes no kernel's choices, and links that are busy
/// all the time.
autotm::Problem of_small_tensors(std::uint64_t seed) {
  autotm::Problem problem(seed, 2);
  RandomGraphOptions options;
  options.kernels = 30;
  options.max_fan_in = 2;
  options.least = Bytes{4096};
  options.most = Bytes{8192};
  problem.graph = random_graph(options, seed);
  for (Link& link : problem.machine.links) link.rates[0].rate.value /= 20;
  problem.machine.tiers[1].read.value /= 20;
  problem.machine.tiers[1].write.value /= 20;
  problem.profile = estimate(problem.graph, problem.machine);
  problem.budget[0] = Lifetimes(problem.graph).peak_bytes() / 2;
  return problem;
}

TEST(BoundCurve, CarriesPricesFromOneBudgetToAnother) {
  int better = 0;
  for (std::uint64_t seed = 0; seed < few_or_all<std::uint64_t>(16, 20); ++seed) {
    SCOPED_TRACE(seed);
    autotm::Problem problem = of_small_tensors(seed);
    const Bytes little = problem.budget[0], more = little + little / 5;
    problem.budget[0] = more;
    const PlanRequest request{problem.graph, problem.machine, problem.profile, problem.budget};
    BoundCurve curve(request, bounds::Recompute::no);
    curve.add(more);
    const Seconds alone = curve.at(more).bound;
    curve.add(little);
    const Seconds with_others = curve.at(more).bound;
    EXPECT_GE(with_others, alone);
    EXPECT_GE(curve.at(little).bound, with_others);
    const auto plan = make_plan("prefetch", request);
    if (plan) {
      EXPECT_GE(plan->prediction.step.count(), with_others.count() * (1 - 1e-9));
    }
    better += with_others > 1.05 * alone;
  }
  EXPECT_GT(better, 0) << "every budget does as well alone: this says nothing";
}

/// The line of the prices is below the step of every plan in less memory, and near the bounds on either side.
void expect_slope(PricedBy by, std::uint64_t cases, int at_least, const std::vector<const char*>& planners) {
  constexpr double rounding = 0.05;
  int compared = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    autotm::Problem problem = of_small_tensors(seed);
    const auto at = [&](Bytes capacity) {
      problem.budget[0] = capacity;
      return memory_worth(problem.request(), "best", by).value();
    };
    const Bytes capacity = problem.budget[0], step = capacity / 5;
    const MemoryWorth worth = at(capacity);
    const double change = static_cast<double>(step.count) * worth.seconds_per_gigabyte / kGigabyte;
    const double bound = worth.bound.count();
    EXPECT_GE(change, bound - at(capacity + step).bound.count() - rounding * bound);
    EXPECT_LE(change, at(capacity - step).bound.count() - bound + rounding * bound);
    if (problem.budget[0] < least_budget(problem.graph, problem.machine).bytes) continue;
    for (const char* planner : planners) {
      const auto plan = make_plan(planner, {problem.graph, problem.machine, problem.profile, problem.budget});
      EXPECT_GE(plan.value().prediction.step.count() * (1 + 1e-9), bound + change) << planner;
    }
    compared += change > 2 * rounding * bound;
  }
  EXPECT_GE(compared, at_least) << "hardly any case in which memory is worth something";
}

TEST(ShadowPrices, OfMovingPlansMemoryAreTheSlopeOfTheBound) {
  expect_slope(PricedBy::moving_plan, few_or_all<std::uint64_t>(5, 15), few_or_all(1, 5),
               {"next-use", "prefetch", "sentinel"});
}

TEST(ShadowPrices, OfAnyPlansMemoryAreTheSlopeOfTheBound) {
  expect_slope(PricedBy::any_plan, few_or_all<std::uint64_t>(2, 15), 1, {"prefetch", "capuchin", "best"});
}

/// All wait for every transfer, so a step is shorter by what they take less.
TEST(ShadowPrices, OfLinksAreWhatTheSamePlanGains) {
  const double rate = 4 * kMega;
  const Planned planned(rig_chain(8), rig_machine(rate, false));
  const PlanRequest request = planned.request(6 * kMega);
  const Plan plan = make_plan("autotm-sync", request).value();
  ASSERT_EQ(plan.prediction.moved.size(), 2U);
  const auto worths = link_worths(request, plan);
  ASSERT_EQ(worths.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Traffic& moved = plan.prediction.moved[i];
    EXPECT_EQ(worths[i].from, moved.from);
    EXPECT_EQ(worths[i].to, moved.to);
    const double seconds = static_cast<double>(moved.bytes.count) / rate * (1 - 1 / 1.1);
    EXPECT_NEAR(worths[i].seconds_per_gigabyte_per_second, seconds / (0.1 * rate / kGigabyte), 1e-6);
  }
}

TEST(ShadowPrices, OfOtherTiersAreNothingAsLongAsThereIsRoom) {
  const Planned planned(rig_chain(8), rig_machine(kMega / 8.0, false));
  PlanRequest request = planned.request(6 * kMega);
  const Plan plan = make_plan("autotm-async", request).value();
  const ShadowPrices roomy = shadow_prices(request, plan, "autotm-async");
  EXPECT_EQ(roomy.seconds_per_gigabyte[1], std::optional<double>(0));
  EXPECT_GT(roomy.seconds_per_gigabyte[0].value(), 0);
  request.budget[1] = plan.budget[1];
  EXPECT_FALSE(shadow_prices(request, plan, "autotm-async").seconds_per_gigabyte[1].has_value());
}

}  // namespace
}  // namespace terrace

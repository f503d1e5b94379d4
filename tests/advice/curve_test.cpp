#include <gtest/gtest.h>

#include <map>

#include "base/random.hpp"
#include "plan/reach.hpp"
#include "planners/advice.hpp"
#include "planners/baseline_rig.hpp"
#include "support/long_tests.hpp"
#include "support/random_graph.hpp"
#include "support/random_machine.hpp"
#include "terrace/simulate.hpp"

namespace terrace {
namespace {

std::uint64_t cases() { return few_or_all<std::uint64_t>(8, 30); }

AdviceRequest advice(const Planned& on, const std::string& planner) {
  AdviceRequest made{on.graph, on.machine, on.profile, {}, planner};
  for (const MachineTier& tier : on.machine.tiers) made.budget.push_back(tier.capacity);
  return made;
}

Result<Plan> plan_of(const Planned& on, const std::string& planner, Bytes fast) {
  return make_plan(planner, on.request(fast.count));
}

Planned random_case(std::uint64_t seed) {
  RandomGraphOptions shape;
  shape.kernels = 5 + static_cast<std::uint32_t>(seed % 25);
  return {random_graph(shape, seed), random_machine(seed)};
}

Planned chain(double rate, bool addressable) { return {rig_chain(8), rig_machine(rate, addressable)}; }

std::vector<Bytes> tenths(Bytes peak) {
  std::vector<Bytes> all;
  for (std::uint64_t i = 1; i <= 11; ++i) all.push_back(peak / 10 * i);
  return all;
}

TEST(AdviceCurve, HasAVerifiedPlanWithinEveryBudget) {
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    SCOPED_TRACE(seed);
    const Planned asked = random_case(seed);
    Adviser adviser(advice(asked, "next-use"));
    ASSERT_TRUE(adviser.plan_for_all(tenths(adviser.peak())));
    for (const AdvicePoint& point : adviser.curve()) {
      const Plan& plan = point.plan->plan();
      EXPECT_LE(plan.budget[0], point.fast);
      EXPECT_TRUE(violations(asked.graph, asked.machine, plan).empty());
      EXPECT_EQ(simulate(asked.graph, asked.machine, asked.profile, plan).step, point.step);
      EXPECT_DOUBLE_EQ(point.slowdown, point.step / adviser.fast_only() - 1);
    }
  }
}

TEST(AdviceCurve, NeverHasALongerStepOrALargerBoundWithMoreMemory) {
  int would_be_longer = 0;
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    SCOPED_TRACE(seed);
    const Planned asked = random_case(seed);
    Adviser adviser(advice(asked, "lru"));
    ASSERT_TRUE(adviser.plan_for_all(tenths(adviser.peak())));
    const auto curve = adviser.curve();
    for (std::size_t i = 0; i < curve.size(); ++i) {
      EXPECT_GE(curve[i].step.count(), curve[i].bound.count() * (1 - 1e-9));
      if (i == 0) continue;
      EXPECT_GT(curve[i].fast, curve[i - 1].fast);
      EXPECT_LE(curve[i].step, curve[i - 1].step);
      EXPECT_LE(curve[i].bound, curve[i - 1].bound);
      const auto own = plan_of(asked, "lru", curve[i].fast);
      would_be_longer += own.ok() && own->prediction.step > curve[i - 1].step;
    }
  }
  EXPECT_GT(would_be_longer, 0) << "the planner alone does as well: this says nothing";
}

TEST(AdviceCurve, BeginsWithTheLeastBudgetAndEndsWithEverythingInFastMemory) {
  const Planned asked = chain(kMega / 4, false);
  Adviser adviser(advice(asked, "prefetch"));
  ASSERT_TRUE(adviser.plan_for_all({}));
  const auto curve = adviser.curve();
  ASSERT_EQ(curve.size(), 2U);
  EXPECT_EQ(curve[0].fast, least_budget(asked.graph, asked.machine).bytes);
  EXPECT_GT(curve[0].slowdown, 0);
  EXPECT_EQ(curve[1].fast, adviser.all_fast());
  EXPECT_EQ((*curve[1].plan)->planner, "all-fast");
  EXPECT_NEAR(curve[1].slowdown, 0, 1e-9);
  EXPECT_EQ(curve[1].bound, adviser.fast_only());
}

TEST(AdviceCurve, EndsWhereTheMachineDoes) {
  Planned asked = chain(kMega / 4, false);
  asked.machine.tiers[0].capacity = Bytes{5 * kMega};
  Adviser adviser(advice(asked, "prefetch"));
  ASSERT_TRUE(adviser.plan_for_all({Bytes{4 * kMega}, Bytes{6 * kMega}}));
  EXPECT_EQ(adviser.curve().back().fast, Bytes{5 * kMega});
  EXPECT_GT(adviser.curve().back().slowdown, 0);
  EXPECT_EQ(adviser.all_fast(), adviser.peak());
}

TEST(AdviceCurve, NeedsABudgetThatSomeKernelFitsIn) {
  Planned asked = chain(kMega, false);
  asked.machine.tiers[0].capacity = Bytes{kMega};
  Adviser adviser(advice(asked, "prefetch"));
  const auto planned = adviser.plan_for_all({Bytes{4 * kMega}});
  ASSERT_FALSE(planned);
  EXPECT_NE(planned.error().message.find("are missing"), std::string::npos) << planned.error().message;
  EXPECT_FALSE(adviser.least_for(1));
}

/// Kernels can use fast memory only, and no tensor may move.
TEST(AdviceCurve, AsksThePlannerOnceForEveryBudgetThatItRefuses) {
  const Planned asked = chain(kMega, false);
  AdviceRequest request = advice(asked, "autotm-static");
  std::map<Bytes, int> times;
  request.progress = [&](Bytes fast) { ++times[fast]; };
  Adviser adviser(request);
  const auto first = adviser.plan_for(Bytes{5 * kMega}), again = adviser.plan_for(Bytes{5 * kMega});
  ASSERT_FALSE(first);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, first.error().message);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(adviser.plan_for_all(tenths(adviser.peak())));
    ASSERT_TRUE(adviser.least_for(0.5));
  }
  EXPECT_GT(times.size(), 5U);
  for (const auto& [fast, count] : times) EXPECT_EQ(count, 1) << to_string(fast);
}

TEST(AdviceLeast, IsWhatTryingEveryBudgetFinds) {
  const Planned asked = chain(4 * kMega, false);
  for (const double slowdown : {0.0, 0.05, 0.1, 0.2, 0.3}) {
    SCOPED_TRACE(slowdown);
    Adviser adviser(advice(asked, "autotm-sync"));
    const AdvicePoint found = adviser.least_for(slowdown).value();
    EXPECT_LE(found.slowdown, slowdown + 1e-9);
    EXPECT_EQ((*found.plan)->budget[0], found.fast);
    // Nearly everything has a megabyte, so that every megabyte is another plan.
    Bytes least = adviser.all_fast();
    for (std::uint64_t mega = 12; mega-- > 0;) {
      const auto plan = plan_of(asked, "autotm-sync", Bytes{mega * kMega + 4096});
      if (plan && plan->prediction.step <= adviser.fast_only() * (1 + slowdown) * (1 + 1e-9))
        least = std::min(least, reach(asked.graph, asked.machine, *plan)[0]);
    }
    EXPECT_LE(found.fast, least + adviser.all_fast() / 100);
  }
}

TEST(AdviceLeast, IsLessForALargerSlowdown) {
  const Planned asked = chain(kMega, false);
  Adviser adviser(advice(asked, "autotm-sync"));
  const Bytes little = adviser.least_for(0.5).value().fast, much = adviser.least_for(0).value().fast;
  EXPECT_LT(little, much);
  // What was tried stays on the curve.
  EXPECT_GT(adviser.curve().size(), 2U);
  EXPECT_LE(adviser.least_for(0.5).value().fast, little);
}

TEST(AdviceLeast, SaysWhyNoBudgetWillDo) {
  Planned asked = chain(kMega, false);
  asked.machine.tiers[0].capacity = Bytes{5 * kMega};
  Adviser adviser(advice(asked, "autotm-sync"));
  const auto none = adviser.least_for(0.001);
  ASSERT_FALSE(none);
  for (const char* part : {"no plan by autotm-sync in up to 5.00 MiB of fast is within 0.1% of full speed",
                           "the fastest is ", "the bound says"})
    EXPECT_NE(none.error().message.find(part), std::string::npos) << none.error().message;
}

TEST(AdvicePrice, IsOfWhatThePlanUsesOfEveryTier) {
  const Planned asked = chain(kMega, true);
  AdviceRequest request = advice(asked, "next-use");
  request.prices = {10.0, 3.0};
  Adviser adviser(request);
  ASSERT_TRUE(adviser.plan_for_all(tenths(adviser.peak())));
  for (const AdvicePoint& point : adviser.curve()) {
    const auto used = simulate(asked.graph, asked.machine, asked.profile, point.plan->plan()).peak;
    const double by_hand =
        (10.0 * static_cast<double>(used[0].count) + 3.0 * static_cast<double>(used[1].count)) / 1e9;
    ASSERT_TRUE(point.price.has_value());
    EXPECT_NEAR(*point.price, by_hand, 1e-12);
  }
  EXPECT_NEAR(adviser.all_fast_price().value(), 10.0 * static_cast<double>(adviser.peak().count) / 1e9,
              1e-12);
}

TEST(AdvicePrice, IsUnknownWhereATierThatIsUsedHasNone) {
  const Planned asked = chain(kMega, false);
  AdviceRequest request = advice(asked, "next-use");
  request.prices = {10.0, std::nullopt};
  Adviser adviser(request);
  ASSERT_TRUE(adviser.plan_for_all({}));
  EXPECT_FALSE(adviser.curve().front().price.has_value());
  EXPECT_TRUE(adviser.curve().back().price.has_value()) << "all in fast memory";
}

/// Whether the first is at least as good in both, and better in one.
bool beats(double cost, Seconds step, double other_cost, Seconds other_step) {
  return cost <= other_cost && step <= other_step && (cost < other_cost || step < other_step);
}

TEST(AdviceFrontier, HoldsExactlyWhatNothingBeats) {
  int beaten = 0;
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    SCOPED_TRACE(seed);
    const Planned asked = random_case(seed);
    AdviceRequest request = advice(asked, "first-touch");
    // Slow memory that costs more than fast memory is never bought if it can be helped.
    request.prices.assign(asked.machine.tiers.size(), seed % 2 == 0 ? 1.0 : 20.0);
    request.prices[0] = 10.0;
    Adviser adviser(request);
    if (!adviser.plan_for_all(tenths(adviser.peak()))) continue;
    const auto curve = adviser.curve();
    for (const AdvicePoint& point : curve) {
      bool any = false, same = false;
      for (const AdvicePoint& other : curve) {
        any = any || beats(*other.price, other.step, *point.price, point.step);
        same = same || (&other < &point && *other.price == *point.price && other.step == point.step);
      }
      EXPECT_EQ(point.frontier, !any && !same);
      beaten += any;
    }
  }
  EXPECT_GT(beaten, 0);
}

}  // namespace
}  // namespace terrace

#include "planners/shadow_prices.hpp"

#include <gtest/gtest.h>

#include "autotm/rig.hpp"
#include "planners/autotm/fast.hpp"
#include "planners/baseline_rig.hpp"

namespace terrace {
namespace {

using autotm::Formulation;

constexpr double kGigabyte = 1e9;

autotm::FastOptions patient() {
  autotm::FastOptions options;
  options.gap = 0;
  options.iterations = 4000;
  options.time = Seconds{60};
  return options;
}

/// Nested lives: a megabyte less means that one more megabyte goes out and comes back, and all wait for both.
TEST(ShadowPrices, OfMemoryAreWhatMovingAMegabyteTakes) {
  const Planned planned(rig_chain(8), rig_machine(4 * kMega, false));
  const auto worth = memory_worth(planned.request(6 * kMega), Formulation::synchronous).value();
  EXPECT_NEAR(worth.seconds_per_gigabyte / kGigabyte * kMega, 2.0 / 4, 0.01);
  EXPECT_LT(worth.gap, 0.2);
}

TEST(ShadowPrices, OfMemoryAreNothingWhereEverythingFits) {
  const Planned planned(rig_chain(8), rig_machine(kMega, false));
  for (const Formulation formulation : autotm::kFormulations) {
    const auto worth = memory_worth(planned.request(20 * kMega), formulation).value();
    EXPECT_NEAR(worth.seconds_per_gigabyte, 0, 1e-9);
  }
}

/// What the relaxed problem would take with another capacity: no less than the first, no more than the
/// second.
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
TEST(ShadowPrices, OfMemoryAreTheSlopeOfTheBound) {
  constexpr double kShort = 0.004;
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const autotm::Problem problem(seed, 10);
    const PlanRequest request = problem.request();
    for (const Formulation formulation : autotm::kFormulations) {
      SCOPED_TRACE(std::to_string(seed) + " " + std::to_string(static_cast<int>(formulation)));
      const auto worth = memory_worth(request, formulation);
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
  EXPECT_GT(compared, 50) << "hardly any case in which memory is worth something";
}

TEST(ShadowPrices, OfMemoryTellWhyThereAreNone) {
  const Planned planned(rig_chain(8), rig_machine(kMega, false));
  const auto plan = make_plan("next-use", planned.request(20 * kMega)).value();
  const ShadowPrices prices = shadow_prices(planned.request(kMega), plan, "next-use");
  EXPECT_FALSE(prices.memory.has_value());
  EXPECT_FALSE(prices.seconds_per_gigabyte[0].has_value());
  EXPECT_NE(prices.reason, "");
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
  const Planned planned(rig_chain(8), rig_machine(kMega, false));
  PlanRequest request = planned.request(6 * kMega);
  const Plan plan = make_plan("autotm-async", request).value();
  const ShadowPrices roomy = shadow_prices(request, plan, "autotm-async");
  EXPECT_EQ(roomy.seconds_per_gigabyte[1], std::optional<double>(0));
  EXPECT_GT(roomy.seconds_per_gigabyte[0].value(), 0);
  request.budget[1] = plan.budget[1];
  EXPECT_FALSE(shadow_prices(request, plan, "autotm-async").seconds_per_gigabyte[1].has_value());
}

TEST(ShadowPrices, AreOfThePlannersOwnFormulation) {
  EXPECT_EQ(formulation_of("autotm-static+gap=0.1"), Formulation::fixed);
  EXPECT_EQ(formulation_of("autotm-sync"), Formulation::synchronous);
  EXPECT_EQ(formulation_of("autotm-async"), Formulation::asynchronous);
  EXPECT_EQ(formulation_of("best"), Formulation::asynchronous);
}

}  // namespace
}  // namespace terrace

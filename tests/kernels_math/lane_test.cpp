// SPDX-License-Identifier: Apache-2.0
#include "math/lane.hpp"

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// How far `got` is from `want`, in units of the last place of a float there.
double distance_in_ulps(float got, double want) {
  const float nearest = static_cast<float>(std::abs(want));
  const double ulp = double{std::nextafter(nearest, kInfinity)} - double{nearest};
  return std::abs(double{got} - want) / ulp;
}

/// The worst distance over `n` points from low to high, on the level in force.
template <class Function>
double worst_ulps(float low, float high, int n, Function function, double (*oracle)(double)) {
  Floats x(static_cast<std::size_t>(n)), y(x.size());
  for (int i = 0; i < n; ++i) x[i] = low + (high - low) * static_cast<float>(i) / static_cast<float>(n - 1);
  const float* in = x.data();
  float* out = y.data();
  run_at(
      level(),
      [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) out[i] = function(in[i]);
      },
      0, n);
  double worst = 0;
  for (int i = 0; i < n; ++i) worst = std::max(worst, distance_in_ulps(y[i], oracle(double{x[i]})));
  return worst;
}

TEST(Lane, ExpIsAccurateToTwoUnits) {
  at_each_level([] {
    const auto exp = [](float x) { return lane::exp(x); };
    EXPECT_LE(worst_ulps(-87, 88.7f, 300001, exp, std::exp), 2);
    EXPECT_LE(worst_ulps(-1, 1, 100001, exp, std::exp), 2);
    EXPECT_LE(worst_ulps(-103.5f, -87, 10001, exp, std::exp), 2) << "subnormal results";
  });
}

TEST(Lane, ExpOfTheExtremes) {
  EXPECT_EQ(lane::exp(0), 1);
  EXPECT_EQ(lane::exp(-kInfinity), 0);
  EXPECT_EQ(lane::exp(-1000), 0);
  EXPECT_EQ(lane::exp(kInfinity), kInfinity);
  EXPECT_EQ(lane::exp(89), kInfinity);
  EXPECT_TRUE(std::isnan(lane::exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(lane::exp(-std::numeric_limits<float>::quiet_NaN())));
}

TEST(Lane, LogIsAccurateToTwoUnits) {
  at_each_level([] {
    const auto log = [](float x) { return lane::log(x); };
    EXPECT_LE(worst_ulps(0x1p-24f, 1, 300001, log, std::log), 2);
    EXPECT_LE(worst_ulps(0.5f, 2.0f, 100001, log, std::log), 2);
    EXPECT_LE(worst_ulps(1, 1e30f, 100001, log, std::log), 2);
  });
}

TEST(Lane, Log1pOfTheUnitIntervalIsAccurateToThreeUnits) {
  at_each_level([] {
    const auto log1p = [](float x) { return lane::log1p(x); };
    EXPECT_LE(worst_ulps(0, 1, 300001, log1p, std::log1p), 3);
    EXPECT_LE(worst_ulps(0, 1e-6f, 1001, log1p, std::log1p), 3);
  });
}

TEST(Lane, SinAndCosGoRoundTheCircle) {
  at_each_level([] {
    for (int i = 0; i <= 100000; ++i) {
      const float turns = static_cast<float>(i) / 100000;
      const lane::SinCos got = lane::sin_cos(turns);
      const double angle = 2 * std::numbers::pi * double{turns};
      ASSERT_NEAR(got.sin, std::sin(angle), 2e-7) << turns;
      ASSERT_NEAR(got.cos, std::cos(angle), 2e-7) << turns;
    }
  });
}

TEST(Lane, NormalDistributionKeepsItsAccuracyInTheLowerTail) {
  for (int i = -9000; i <= 9000; ++i) {
    const float x = static_cast<float>(i) / 1000;
    const lane::Normal got = lane::normal(x);
    const double below = 0.5 * std::erfc(-double{x} / std::sqrt(2.0));
    const double density = std::exp(-double{x} * double{x} / 2) / std::sqrt(2 * std::numbers::pi);
    // The rounding of x^2 / 2 before it is exponentiated is most of the error far out.
    const double tolerance = 5e-7 * (1 + double{x} * double{x});
    ASSERT_NEAR(got.below, below, tolerance * below) << x;
    ASSERT_NEAR(got.density, density, tolerance * density) << x;
  }
}

}  // namespace
}  // namespace terrace::math

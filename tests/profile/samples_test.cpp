// SPDX-License-Identifier: Apache-2.0
#include "profile/samples.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <stdexcept>

namespace terrace {
namespace {

TimeSamples of(std::initializer_list<double> times) {
  TimeSamples samples;
  for (const double time : times) samples.add(Seconds{time});
  return samples;
}

constexpr Seconds kNoTime{0}, kLong{1};

TEST(TimeSamples, MedianIgnoresOneThatWasDisturbed) {
  EXPECT_DOUBLE_EQ(of({2, 100, 1}).median().count(), 2);
  EXPECT_DOUBLE_EQ(of({4, 1, 2, 100}).median().count(), 3);
  EXPECT_THROW(TimeSamples().median(), std::logic_error);
}

TEST(TimeSamples, HalfWidthIsStudents) {
  EXPECT_TRUE(std::isinf(of({1}).half_width().count()));
  // The deviation of 1, 2, 3 is 1; two degrees of freedom.
  EXPECT_NEAR(of({1, 2, 3}).half_width().count(), 4.303 / std::sqrt(3), 1e-9);
  EXPECT_EQ(of({2, 2, 2}).half_width().count(), 0);
}

TEST(TimeSamples, AreEnoughWhenTheyAgree) {
  EXPECT_FALSE(of({2, 2}).are_enough(kNoTime));
  EXPECT_TRUE(of({2, 2, 2}).are_enough(kNoTime));
  EXPECT_FALSE(of({1, 2, 3}).are_enough(kNoTime));
}

TEST(TimeSamples, AreEnoughWhenTimeIsUpButNeverFewerThanThree) {
  EXPECT_TRUE(of({1, 2, 3}).are_enough(kLong));
  EXPECT_FALSE(of({1, 2}).are_enough(kLong));
}

TEST(TimeSamples, AreEnoughAtFifteenHoweverTheyDiffer) {
  TimeSamples samples;
  for (int i = 0; i < 14; ++i) samples.add(Seconds{static_cast<double>(i % 2)});
  EXPECT_FALSE(samples.are_enough(kNoTime));
  samples.add(Seconds{9});
  EXPECT_TRUE(samples.are_enough(kNoTime));
}

TEST(TimeSamples, AreEnoughSoonerWithLessEffort) {
  const Effort little{4, 0.5, Seconds{0.1}};
  EXPECT_FALSE(of({2, 2}).are_enough(kLong, little));
  EXPECT_TRUE(of({2, 2.1, 2.2}).are_enough(kNoTime, little));
  EXPECT_FALSE(of({1, 2, 30}).are_enough(kNoTime, little));
  EXPECT_TRUE(of({1, 2, 30}).are_enough(Seconds{0.1}, little));
  EXPECT_TRUE(of({1, 2, 30, 4}).are_enough(kNoTime, little));
}

}  // namespace
}  // namespace terrace

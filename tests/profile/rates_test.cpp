// SPDX-License-Identifier: Apache-2.0
#include "profile/rates.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "base/system.hpp"

namespace terrace {
namespace {

TEST(Rates, ArePositiveAndFinite) {
  for (const unsigned threads : {1U, probe_cores().usable()}) {
    const Rates rates = measure_rates(threads).value();
    EXPECT_TRUE(std::isfinite(rates.flops_per_second) && rates.flops_per_second > 0);
    EXPECT_TRUE(std::isfinite(rates.bandwidth.value) && rates.bandwidth.value > 0);
  }
}

TEST(Rates, NeedAThread) { EXPECT_THROW(static_cast<void>(measure_rates(0)), std::logic_error); }

TEST(Rates, BoundIsTheSlowerOfArithmeticAndMemory) {
  const Rates rates{100, {10}};
  EXPECT_DOUBLE_EQ(rates.bound(200, Bytes{10}).count(), 2);
  EXPECT_DOUBLE_EQ(rates.bound(100, Bytes{40}).count(), 4);
}

}  // namespace
}  // namespace terrace

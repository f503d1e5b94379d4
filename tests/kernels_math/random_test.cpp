// SPDX-License-Identifier: Apache-2.0
#include "math/random.hpp"

#include <array>
#include <stdexcept>

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

constexpr RandomKey kKey{.seed = 0x1234567890abcdef, .step = 7, .stream = 3};

Floats uniform(std::int64_t n, float low, float high, const RandomKey& key = kKey) {
  Floats out(static_cast<std::size_t>(n));
  fill_uniform(out.data(), n, low, high, key);
  return out;
}

Floats normal(std::int64_t n, float mean, float deviation, const RandomKey& key = kKey) {
  Floats out(static_cast<std::size_t>(n));
  fill_normal(out.data(), n, mean, deviation, key);
  return out;
}

std::vector<std::int32_t> integers(std::int64_t n, std::int32_t bound) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(n));
  fill_integers(out.data(), n, bound, kKey);
  return out;
}

/// The mean of (x - centre)^power.
double moment(const Floats& values, double centre, int power) {
  double sum = 0;
  for (const float value : values) sum += std::pow(value - centre, power);
  return sum / static_cast<double>(values.size());
}

// Random123's file kat_vectors, the lines "philox4x32 10".
TEST(Philox, GivesThePublishedAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, WordsAreTheWordsOfPhilox) {
  const RandomKey zero;
  const auto first = philox({0, 0, 0, 0}, {0, 0}), second = philox({1, 0, 0, 0}, {0, 0});
  EXPECT_EQ(random_word(zero, 0), first[0]);
  EXPECT_EQ(random_word(zero, 1), second[0]);
  EXPECT_EQ(random_word(zero, 16), first[1]);
  EXPECT_EQ(random_word(zero, 63), philox({15, 0, 0, 0}, {0, 0})[3]);
  EXPECT_EQ(random_word(zero, 64), philox({16, 0, 0, 0}, {0, 0})[0]);
  EXPECT_EQ(random_word({.seed = 0x0000000200000001, .step = 4, .stream = 5}, 0),
            philox({0, 0, 4, 5}, {1, 2})[0]);
  EXPECT_EQ(random_word(zero, std::int64_t{1} << 36), philox({0, 4, 0, 0}, {0, 0})[0]);
}

TEST(Random, EveryPartOfTheKeyMatters) {
  const Floats base = uniform(100, 0, 1);
  for (const RandomKey other :
       {RandomKey{kKey.seed + 1, kKey.step, kKey.stream},
        RandomKey{kKey.seed + (std::uint64_t{1} << 32), kKey.step, kKey.stream},
        RandomKey{kKey.seed, kKey.step + 1, kKey.stream}, RandomKey{kKey.seed, kKey.step, kKey.stream + 1}}) {
    EXPECT_FALSE(same_bits(uniform(100, 0, 1, other), base));
  }
}

TEST(Random, UniformNumbersAreTheUpperBitsOfTheirWords) {
  at_each_level([] {
    for (const std::int64_t n : kSizes) {
      const Floats got = uniform(n, -3, 5);
      for (std::int64_t i = 0; i < n; ++i) {
        const double share = static_cast<double>(random_word(kKey, i) >> 8) / (1 << 24);
        ASSERT_NEAR(got[i], -3 + 8 * share, 1e-6) << i;
      }
    }
  });
}

TEST(Random, IntegersAreScaledWords) {
  at_each_level([] {
    for (const std::int32_t bound : {1, 10, 50257, std::numeric_limits<std::int32_t>::max()}) {
      const auto got = integers(1001, bound);
      for (std::int64_t i = 0; i < 1001; ++i) {
        ASSERT_EQ(got[i], static_cast<std::int32_t>(std::uint64_t{random_word(kKey, i)} * bound >> 32));
      }
    }
  });
}

TEST(Random, NormalNumbersAreBoxAndMullersOfTheirWords) {
  at_each_level([] {
    for (const std::int64_t n : kSizes) {
      const Floats got = normal(n, 1, 2);
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t first = i - (i % 32 >= 16 ? 16 : 0);
        const double share = ((random_word(kKey, first) >> 8) + 1) * 0x1p-24;
        const double angle = 2 * std::acos(-1.0) * (random_word(kKey, first + 16) >> 8) * 0x1p-24;
        const double radius = std::sqrt(-2 * std::log(share));
        ASSERT_NEAR(got[i], 1 + 2 * radius * (i == first ? std::cos(angle) : std::sin(angle)), 2e-5) << i;
      }
    }
  });
}

TEST(Random, AnElementDoesNotDependOnHowManyThereAre) {
  const Floats all_uniform = uniform(70001, 0, 1), all_normal = normal(70001, 0, 1);
  for (const std::int64_t n : kSizes) {
    EXPECT_TRUE(same_bits(uniform(n, 0, 1), Floats(all_uniform.begin(), all_uniform.begin() + n)));
    EXPECT_TRUE(same_bits(normal(n, 0, 1), Floats(all_normal.begin(), all_normal.begin() + n)));
  }
}

TEST(Random, AStretchHoldsTheElementsItWouldInTheWhole) {
  at_each_level([] {
    const Floats all_uniform = uniform(70001, -1, 1), all_normal = normal(70001, 0, 0.1F);
    for (const std::int64_t begin : {1, 16, 63, 64, 65, 1000, 40003}) {
      for (const std::int64_t n : {0, 1, 17, 64, 129, 29998}) {
        Floats out(static_cast<std::size_t>(n));
        fill_uniform(out.data(), n, -1, 1, kKey, begin);
        EXPECT_TRUE(same_bits(out, Floats(all_uniform.begin() + begin, all_uniform.begin() + begin + n)));
        fill_normal(out.data(), n, 0, 0.1F, kKey, begin);
        EXPECT_TRUE(same_bits(out, Floats(all_normal.begin() + begin, all_normal.begin() + begin + n)));
      }
    }
  });
  EXPECT_THROW(fill_uniform(nullptr, 0, 0, 1, kKey, -1), std::logic_error);
}

TEST(Random, DoesNotDependOnTheNumberOfThreads) {
  expect_independent_of_threads([] { return uniform(70001, -1, 1); });
  expect_independent_of_threads([] { return normal(70001, 0, 1); });
  expect_independent_of_threads([] { return integers(70001, 1000); });
}

// Bounds are five standard errors of the mean wide; the key is fixed, so the outcome is too.
TEST(Random, UniformNumbersHaveUniformMoments) {
  const Floats values = uniform(1 << 20, 0, 1);
  EXPECT_NEAR(moment(values, 0, 1), 0.5, 5 * 0.2887 / 1024);
  EXPECT_NEAR(moment(values, 0.5, 2), 1.0 / 12, 5 * 0.0745 / 1024);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 0);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 1);
}

TEST(Random, UniformNumbersNeverReachTheOpenEnd) {
  // A span of two steps of the type: almost every number would round up to the end.
  const float low = 1, high = 1 + 2 * std::numeric_limits<float>::epsilon();
  for (const float value : uniform(1000, low, high)) {
    ASSERT_GE(value, low);
    ASSERT_LT(value, high);
  }
}

TEST(Random, NormalNumbersHaveNormalMoments) {
  const Floats values = normal(1 << 20, 3, 2);
  EXPECT_NEAR(moment(values, 0, 1), 3, 5 * 2.0 / 1024);
  EXPECT_NEAR(moment(values, 3, 2), 4, 5 * 4 * std::sqrt(2.0) / 1024);
  EXPECT_NEAR(moment(values, 3, 3), 0, 5 * 8 * std::sqrt(15.0) / 1024);
  EXPECT_NEAR(moment(values, 3, 4), 48, 5 * 16 * std::sqrt(96.0) / 1024);
}

TEST(Random, NeighboursAreUncorrelated) {
  const Floats values = normal(1 << 20, 0, 1);
  for (const std::size_t distance : {1u, 2u, 15u, 16u, 17u, 32u, 48u, 64u}) {
    double sum = 0;
    for (std::size_t i = distance; i < values.size(); ++i) sum += double{values[i]} * values[i - distance];
    EXPECT_NEAR(sum / (1 << 20), 0, 5.0 / 1024) << "at distance " << distance;
  }
}

TEST(Random, IntegersFillTheirRangeEvenly) {
  constexpr int kBound = 100, kEach = 10000;
  std::array<int, kBound> counts{};
  for (const std::int32_t value : integers(kBound * kEach, kBound))
    ++counts.at(static_cast<std::size_t>(value));
  double chi_squared = 0;
  for (const int count : counts) chi_squared += std::pow(count - kEach, 2) / kEach;
  EXPECT_NEAR(chi_squared, kBound - 1, 5 * std::sqrt(2.0 * (kBound - 1)));
}

TEST(Random, RefusesEmptyDistributions) {
  EXPECT_THROW(uniform(1, 1, 1), std::logic_error);
  EXPECT_THROW(normal(1, 0, -1), std::logic_error);
  EXPECT_THROW(integers(1, 0), std::logic_error);
}

}  // namespace
}  // namespace terrace::math

#include "backends/cpu/math/dropout.hpp"

#include <stdexcept>

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

constexpr RandomKey kKey{.seed = 42, .step = 1, .stream = 9};

Floats dropped(const Floats& x, float share, const RandomKey& key = kKey) {
  Floats y(x.size(), -7);
  dropout(x.data(), y.data(), std::ssize(x), share, key);
  return y;
}

TEST(Dropout, KeepsWhatTheGeneratorSaysAndScalesIt) {
  at_each_level([] {
    for (const std::int64_t n : kSizes) {
      const Floats x = random_floats(n, 1);
      Doubles want(x.size());
      for (std::int64_t i = 0; i < n; ++i) {
        want[i] =
            (random_word(kKey, i) >> 8) * 0x1p-24 >= double{0.3f} ? double{x[i]} / (1 - double{0.3f}) : 0;
      }
      EXPECT_TRUE(all_near(dropped(x, 0.3f), want, 1e-6));
    }
  });
}

TEST(Dropout, KeepsAnElementWhoseNumberIsTheShareItself) {
  const auto share = static_cast<float>((random_word(kKey, 0) >> 8) * 0x1p-24);
  EXPECT_FLOAT_EQ(dropped({3}, share)[0], 3 / (1 - share));
}

TEST(Dropout, DropsTheShareItIsAskedTo) {
  const Floats ones(1 << 20, 1);
  for (const float share : {0.1f, 0.5f, 0.9f}) {
    const Floats y = dropped(ones, share);
    const auto zeros = static_cast<double>(std::count(y.begin(), y.end(), 0.0f));
    EXPECT_NEAR(zeros / (1 << 20), share, 5 * std::sqrt(double{share} * (1 - double{share})) / 1024);
  }
}

TEST(Dropout, OfNothingChangesNothing) {
  const Floats x = random_floats(1000, 2);
  EXPECT_TRUE(same_bits(dropped(x, 0), x));
}

TEST(Dropout, GradientPassesWhereValuesPassed) {
  const Floats x = random_floats(1001, 3, 1, 2), dy(1001, 1), y = dropped(x, 0.5f), dx = dropped(dy, 0.5f);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(y[i], x[i] * dx[i]);
}

TEST(Dropout, InPlaceGivesTheSameBits) {
  for (const std::int64_t n : kSizes) {
    Floats x = random_floats(n, 4);
    const Floats expected = dropped(x, 0.2f);
    dropout(x.data(), x.data(), n, 0.2f, kKey);
    EXPECT_TRUE(same_bits(x, expected));
  }
}

TEST(Dropout, DoesNotDependOnTheNumberOfThreads) {
  const Floats x = random_floats(70001, 5);
  expect_independent_of_threads([&] { return dropped(x, 0.1f); });
}

TEST(Dropout, RefusesSharesItCannotScaleFor) {
  EXPECT_THROW(dropped({1}, 1), std::logic_error);
  EXPECT_THROW(dropped({1}, -0.1f), std::logic_error);
}

}  // namespace
}  // namespace terrace::math

// SPDX-License-Identifier: Apache-2.0
// What the tests of the processor's own kernels share: data, comparison with a double-precision oracle, and
// the levels and thread counts under which a kernel has to give the right and the same answer.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "math/level.hpp"

namespace terrace::math::test {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// None, one, odd, around a vector and a unit, and enough for several threads.
inline const std::vector<std::int64_t> kSizes = {0, 1, 3, 15, 16, 17, 63, 64, 65, 127, 1000, 70001};

inline Floats random_floats(std::int64_t n, unsigned seed, float low = -2, float high = 2) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  Floats values(static_cast<std::size_t>(n));
  for (float& value : values) value = distribution(generator);
  return values;
}

inline std::vector<std::int32_t> random_indices(std::int64_t n, std::int64_t bound, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int32_t> distribution(0, static_cast<std::int32_t>(bound - 1));
  std::vector<std::int32_t> values(static_cast<std::size_t>(n));
  for (std::int32_t& value : values) value = distribution(generator);
  return values;
}

inline Doubles widen(const Floats& values) { return {values.begin(), values.end()}; }

/// Every |got - want| is at most `tolerance` times (|want| + 1). NaN is near nothing.
inline testing::AssertionResult all_near(const Floats& got, const Doubles& want, double tolerance) {
  if (got.size() != want.size()) return testing::AssertionFailure() << "sizes differ";
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(double{got[i]} - want[i]) <= tolerance * (std::abs(want[i]) + 1))) {
      return testing::AssertionFailure()
             << "element " << i << " of " << got.size() << " is " << got[i] << ", expected " << want[i];
    }
  }
  return testing::AssertionSuccess();
}

template <class T>
testing::AssertionResult same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << "sizes differ";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) {
      return testing::AssertionFailure()
             << "element " << i << " of " << a.size() << ": " << a[i] << " and " << b[i];
    }
  }
  return testing::AssertionSuccess();
}

class Threads {
 public:
  explicit Threads(int count) : previous_(omp_get_max_threads()) { omp_set_num_threads(count); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() { omp_set_num_threads(previous_); }

 private:
  int previous_;
};

/// Calls body on each level that this processor has, with several threads.
inline void at_each_level(const std::function<void()>& body) {
  const Threads threads(3);
  for (const Level level : {Level::baseline, Level::avx2, Level::avx512}) {
    if (level > best_level()) continue;
    SCOPED_TRACE("level " + std::to_string(static_cast<int>(level)));
    const ForcedLevel forced(level);
    body();
  }
}

/// make() gives the same bits with any number of threads, and again, on each level.
template <class Make>
void expect_independent_of_threads(Make make) {
  at_each_level([&] {
    const auto expected = make();
    for (const int count : {1, 2, 3, 3}) {
      const Threads threads(count);
      EXPECT_TRUE(same_bits(make(), expected)) << "with " << count << " threads";
    }
  });
}

/// The gradient of `loss` at x by central differences.
inline Doubles numerical_gradient(const std::function<double(const Doubles&)>& loss, Doubles x) {
  constexpr double kStep = 1e-5;
  Doubles gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    x[i] = middle + kStep;
    const double above = loss(x);
    x[i] = middle - kStep;
    const double below = loss(x);
    x[i] = middle;
    gradient[i] = (above - below) / (2 * kStep);
  }
  return gradient;
}

inline double weighted_sum(const Doubles& values, const Floats& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * double{weights[i]};
  return sum;
}

}  // namespace terrace::math::test

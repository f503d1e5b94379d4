#include "backends/cpu/math/gelu.hpp"

#include <numbers>

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

double oracle(double x, Gelu kind) {
  if (kind == Gelu::exact) return x / 2 * std::erfc(-x / std::numbers::sqrt2);
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

Floats forward(const Floats& x, Gelu kind) {
  Floats y(x.size(), -7);
  gelu_forward(x.data(), kind, y.data(), std::ssize(x));
  return y;
}

Floats backward(const Floats& x, const Floats& dy, Gelu kind) {
  Floats dx(x.size(), -7);
  gelu_backward(x.data(), dy.data(), kind, dx.data(), std::ssize(x));
  return dx;
}

void for_all(const std::function<void(std::int64_t, Gelu)>& body) {
  at_each_level([&] {
    for (const Gelu kind : {Gelu::exact, Gelu::tanh}) {
      for (const std::int64_t n : kSizes) body(n, kind);
    }
  });
}

TEST(Gelu, MatchesTheOracle) {
  for_all([](std::int64_t n, Gelu kind) {
    const Floats x = random_floats(n, 1, -8, 8);
    Doubles want;
    for (const float value : x) want.push_back(oracle(value, kind));
    EXPECT_TRUE(all_near(forward(x, kind), want, 3e-7));
  });
}

TEST(Gelu, DerivativeIsThatOfTheForwardPass) {
  for_all([](std::int64_t n, Gelu kind) {
    const Floats x = random_floats(n, 2, -8, 8), dy = random_floats(n, 3);
    Doubles want;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double at = x[i], step = 1e-5;
      want.push_back(double{dy[i]} * (oracle(at + step, kind) - oracle(at - step, kind)) / (2 * step));
    }
    EXPECT_TRUE(all_near(backward(x, dy, kind), want, 1e-6));
  });
}

TEST(Gelu, OfLargeValuesIsTheValueOrNothing) {
  for (const Gelu kind : {Gelu::exact, Gelu::tanh}) {
    EXPECT_EQ(forward({1e6f, -1e6f, 0}, kind), (Floats{1e6f, 0, 0}));
    EXPECT_EQ(backward({1e6f, -1e6f, 0}, {2, 2, 2}, kind), (Floats{2, 0, 1}));
  }
}

TEST(Gelu, InPlaceGivesTheSameBits) {
  for_all([](std::int64_t n, Gelu kind) {
    Floats x = random_floats(n, 4), dy = random_floats(n, 5);
    const Floats y = forward(x, kind), dx = backward(x, dy, kind);
    gelu_backward(x.data(), dy.data(), kind, dy.data(), n);
    EXPECT_TRUE(same_bits(dy, dx));
    gelu_forward(x.data(), kind, x.data(), n);
    EXPECT_TRUE(same_bits(x, y));
  });
}

TEST(Gelu, DoesNotDependOnTheNumberOfThreads) {
  const Floats x = random_floats(70001, 6), dy = random_floats(70001, 7);
  for (const Gelu kind : {Gelu::exact, Gelu::tanh}) {
    expect_independent_of_threads([&] { return forward(x, kind); });
    expect_independent_of_threads([&] { return backward(x, dy, kind); });
  }
}

}  // namespace
}  // namespace terrace::math

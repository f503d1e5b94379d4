#include "backends/cpu/math/binary_cross_entropy.hpp"

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

double oracle(const Doubles& logits, double target) {
  double sum = 0;
  for (const double x : logits) sum += std::max(x, 0.0) - target * x + std::log1p(std::exp(-std::abs(x)));
  return sum / static_cast<double>(logits.size());
}

float loss_of(const Floats& logits, float target) {
  float loss = -7;
  binary_cross_entropy_forward(logits.data(), std::ssize(logits), target, &loss);
  return loss;
}

Floats backward(const Floats& logits, float target, float upstream) {
  Floats dlogits(logits.size(), -7);
  binary_cross_entropy_backward(logits.data(), std::ssize(logits), target, &upstream, dlogits.data());
  return dlogits;
}

TEST(BinaryCrossEntropy, IsTheMeanOverAllLogits) {
  at_each_level([] {
    for (const std::int64_t n : kSizes) {
      if (n == 0) continue;
      const Floats logits = random_floats(n, 1, -20, 20);
      for (const float target : {0.0f, 0.9f, 1.0f}) {
        EXPECT_TRUE(all_near({loss_of(logits, target)}, {oracle(widen(logits), target)}, 1e-6));
      }
    }
  });
}

TEST(BinaryCrossEntropy, KeepsSmallLossesAndSurvivesLargeLogits) {
  EXPECT_NEAR(loss_of({-20}, 0), std::log1p(std::exp(-20.0)), 1e-15);
  EXPECT_EQ(loss_of({1e6f}, 0), 1e6f);
  EXPECT_EQ(loss_of({1e6f, -1e6f}, 0), 5e5f);
  EXPECT_EQ(backward({1e6f, -1e6f}, 0, 2), (Floats{1, 0}));
}

TEST(BinaryCrossEntropy, GradientIsThatOfTheLoss) {
  at_each_level([] {
    for (const std::int64_t n : {1, 17, 100}) {
      const Floats logits = random_floats(n, 2, -5, 5);
      const Doubles want =
          numerical_gradient([](const Doubles& x) { return 3 * oracle(x, 0.25); }, widen(logits));
      EXPECT_TRUE(all_near(backward(logits, 0.25f, 3), want, 1e-6));
    }
  });
}

TEST(BinaryCrossEntropy, GradientInPlaceGivesTheSameBits) {
  for (const std::int64_t n : kSizes) {
    Floats x = random_floats(n, 3);
    const Floats expected = backward(x, 1, 2);
    const float upstream = 2;
    binary_cross_entropy_backward(x.data(), n, 1, &upstream, x.data());
    EXPECT_TRUE(same_bits(x, expected));
  }
}

TEST(BinaryCrossEntropy, DoesNotDependOnTheNumberOfThreads) {
  const Floats logits = random_floats(70001, 4);
  expect_independent_of_threads([&] { return Floats{loss_of(logits, 0.9f)}; });
  expect_independent_of_threads([&] { return backward(logits, 0.9f, 1); });
}

TEST(BinaryCrossEntropy, OfNothingIsNoNumber) { EXPECT_TRUE(std::isnan(loss_of({}, 1))); }

}  // namespace
}  // namespace terrace::math

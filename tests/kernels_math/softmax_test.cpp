#include "backends/cpu/math/softmax.hpp"

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

const std::vector<SoftmaxShape> kShapes = {{0, 3, 4}, {1, 1, 1},   {2, 3, 0},   {2, 5, 5},     {3, 4, 9},
                                           {1, 7, 4}, {2, 33, 65}, {8, 64, 64}, {3, 200, 200}, {2, 9, 5000}};
const std::vector<SoftmaxOptions> kOptions = {
    {1, Mask::none}, {0.125f, Mask::none}, {1, Mask::causal}, {0.3f, Mask::causal}, {-2, Mask::causal}};

std::int64_t size_of(const SoftmaxShape& shape) { return shape.batch * shape.rows * shape.columns; }

bool sees(Mask mask, std::int64_t row, std::int64_t column) { return mask == Mask::none || column <= row; }

Doubles oracle(const Doubles& scores, const SoftmaxShape& shape, const SoftmaxOptions& options) {
  Doubles out(scores.size());
  for (std::int64_t row = 0; row < shape.batch * shape.rows; ++row) {
    const double* in = scores.data() + row * shape.columns;
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t c = 0; c < shape.columns; ++c) {
      if (sees(options.mask, row % shape.rows, c)) most = std::max(most, options.scale * in[c]);
    }
    for (std::int64_t c = 0; c < shape.columns; ++c) {
      if (!sees(options.mask, row % shape.rows, c)) continue;
      out[row * shape.columns + c] = std::exp(options.scale * in[c] - most);
      sum += out[row * shape.columns + c];
    }
    for (std::int64_t c = 0; c < shape.columns; ++c) {
      if (sum > 0) out[row * shape.columns + c] /= sum;
    }
  }
  return out;
}

Floats forward(const Floats& scores, const SoftmaxShape& shape, const SoftmaxOptions& options) {
  Floats out(scores.size(), -7);
  softmax_forward(scores.data(), shape, options, out.data());
  return out;
}

Floats backward(const Floats& p, const Floats& dp, const SoftmaxShape& shape, const SoftmaxOptions& options) {
  Floats out(p.size(), -7);
  softmax_backward(p.data(), dp.data(), shape, options, out.data());
  return out;
}

/// Calls body for every shape and option on every level.
void for_all(const std::function<void(const SoftmaxShape&, const SoftmaxOptions&)>& body) {
  at_each_level([&] {
    for (const SoftmaxShape& shape : kShapes) {
      for (const SoftmaxOptions& options : kOptions) body(shape, options);
    }
  });
}

TEST(Softmax, MatchesTheOracle) {
  for_all([](const SoftmaxShape& shape, const SoftmaxOptions& options) {
    const Floats scores = random_floats(size_of(shape), 1, -10, 10);
    EXPECT_TRUE(all_near(forward(scores, shape, options), oracle(widen(scores), shape, options), 1e-6));
  });
}

TEST(Softmax, MaskedEntriesAreZeroWhateverTheyHeld) {
  const SoftmaxShape shape{1, 3, 4};
  Floats scores(12, 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  scores[1] = scores[2] = scores[3] = scores[6] = scores[7] = scores[11] = nan;
  const Floats expected = {1, 0, 0, 0, 0.5f, 0.5f, 0, 0, 1.0f / 3, 1.0f / 3, 1.0f / 3, 0};
  EXPECT_TRUE(all_near(forward(scores, shape, {1, Mask::causal}), widen(expected), 1e-6));
}

TEST(Softmax, SurvivesLargeScores) {
  EXPECT_EQ(forward({1e30f, 0, -1e30f, 1e30f}, {1, 1, 4}, {}), (Floats{0.5f, 0, 0, 0.5f}));
  EXPECT_EQ(forward({-1e30f, -1e30f}, {1, 1, 2}, {}), (Floats{0.5f, 0.5f}));
  EXPECT_TRUE(all_near(forward({200, 100}, {1, 1, 2}, {.scale = -1}), {0, 1}, 1e-6));
}

TEST(Softmax, GradientIsThatOfTheForwardPass) {
  at_each_level([] {
    for (const SoftmaxShape& shape :
         {SoftmaxShape{1, 1, 1}, SoftmaxShape{2, 3, 5}, SoftmaxShape{2, 6, 4}, SoftmaxShape{1, 5, 35}}) {
      for (const SoftmaxOptions& options : kOptions) {
        const Floats scores = random_floats(size_of(shape), 2), weights = random_floats(size_of(shape), 3);
        const Doubles want = numerical_gradient(
            [&](const Doubles& x) { return weighted_sum(oracle(x, shape, options), weights); },
            widen(scores));
        const Floats p = forward(scores, shape, options);
        EXPECT_TRUE(all_near(backward(p, weights, shape, options), want, 2e-6));
      }
    }
  });
}

TEST(Softmax, InPlaceGivesTheSameBits) {
  for_all([](const SoftmaxShape& shape, const SoftmaxOptions& options) {
    Floats scores = random_floats(size_of(shape), 4), dp = random_floats(size_of(shape), 5);
    const Floats p = forward(scores, shape, options), expected = backward(p, dp, shape, options);
    softmax_forward(scores.data(), shape, options, scores.data());
    EXPECT_TRUE(same_bits(scores, p));
    softmax_backward(p.data(), dp.data(), shape, options, dp.data());
    EXPECT_TRUE(same_bits(dp, expected));
  });
}

TEST(Softmax, DoesNotDependOnTheNumberOfThreads) {
  const SoftmaxShape shape{3, 200, 200};
  const Floats scores = random_floats(size_of(shape), 6), dp = random_floats(size_of(shape), 7);
  const SoftmaxOptions options{0.3f, Mask::causal};
  expect_independent_of_threads([&] { return forward(scores, shape, options); });
  const Floats p = forward(scores, shape, options);
  expect_independent_of_threads([&] { return backward(p, dp, shape, options); });
}

}  // namespace
}  // namespace terrace::math

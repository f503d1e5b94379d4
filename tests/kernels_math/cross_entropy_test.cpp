#include "backends/cpu/math/cross_entropy.hpp"

#include <stdexcept>

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

using Labels = std::vector<std::int32_t>;

const std::vector<Rows> kShapes = {{1, 1}, {1, 2}, {3, 10}, {17, 33}, {5, 1000}, {200, 1001}, {40000, 3}};

struct Case {
  Floats logits;
  Labels labels;
};

/// Every fifth row is ignored, but never all of them.
Case make_case(Rows shape, unsigned seed) {
  Case made{random_floats(shape.rows * shape.columns, seed, -10, 10),
            random_indices(shape.rows, shape.columns, seed + 1)};
  for (std::size_t r = 4; r < made.labels.size(); r += 5) made.labels[r] = kIgnoredLabel;
  return made;
}

double oracle_row(const Doubles& logits, std::int64_t row, std::int64_t columns) {
  double most = logits[row * columns], sum = 0;
  for (std::int64_t c = 0; c < columns; ++c) most = std::max(most, logits[row * columns + c]);
  for (std::int64_t c = 0; c < columns; ++c) sum += std::exp(logits[row * columns + c] - most);
  return most + std::log(sum);
}

double oracle_loss(const Doubles& logits, const Labels& labels, Rows shape) {
  double sum = 0;
  int counted = 0;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    if (labels[r] == kIgnoredLabel) continue;
    sum += oracle_row(logits, r, shape.columns) - logits[r * shape.columns + labels[r]];
    ++counted;
  }
  return sum / counted;
}

/// The loss, then the log-sum-exp of every row.
Floats forward(const Case& input, Rows shape) {
  Floats out(static_cast<std::size_t>(shape.rows + 1), -7);
  cross_entropy_forward(input.logits.data(), input.labels.data(), shape, &out[0], out.data() + 1);
  return out;
}

Floats backward(const Case& input, Rows shape, float upstream) {
  const Floats saved = forward(input, shape);
  Floats dlogits(input.logits.size(), -7);
  cross_entropy_backward(input.logits.data(), input.labels.data(), saved.data() + 1, &upstream, shape,
                         dlogits.data());
  return dlogits;
}

TEST(CrossEntropy, IsTheMeanOverLabelledRows) {
  at_each_level([] {
    for (const Rows shape : kShapes) {
      const Case input = make_case(shape, 1);
      const Doubles logits = widen(input.logits);
      Doubles want = {oracle_loss(logits, input.labels, shape)};
      for (std::int64_t r = 0; r < shape.rows; ++r) want.push_back(oracle_row(logits, r, shape.columns));
      EXPECT_TRUE(all_near(forward(input, shape), want, 1e-6));
    }
  });
}

TEST(CrossEntropy, StaysFiniteForLargeLogits) {
  const Case input{{1000, -1000, 0, -1000, 1000, 0}, {0, 0}};
  EXPECT_TRUE(all_near(forward(input, {2, 3}), {1000, 1000, 1000}, 1e-6));
}

TEST(CrossEntropy, GradientIsThatOfTheLoss) {
  at_each_level([] {
    for (const Rows shape : {Rows{1, 1}, Rows{6, 5}, Rows{7, 37}}) {
      const Case input = make_case(shape, 2);
      const Doubles want = numerical_gradient(
          [&](const Doubles& logits) { return 3 * oracle_loss(logits, input.labels, shape); },
          widen(input.logits));
      EXPECT_TRUE(all_near(backward(input, shape, 3), want, 1e-6));
    }
  });
}

TEST(CrossEntropy, GradientInPlaceGivesTheSameBits) {
  for (const Rows shape : kShapes) {
    Case input = make_case(shape, 3);
    const Floats expected = backward(input, shape, 0.5f), saved = forward(input, shape);
    const float upstream = 0.5f;
    cross_entropy_backward(input.logits.data(), input.labels.data(), saved.data() + 1, &upstream, shape,
                           input.logits.data());
    EXPECT_TRUE(same_bits(input.logits, expected));
  }
}

TEST(CrossEntropy, DoesNotDependOnTheNumberOfThreads) {
  for (const Rows shape : {Rows{200, 1001}, Rows{40000, 3}}) {
    const Case input = make_case(shape, 4);
    expect_independent_of_threads([&] { return forward(input, shape); });
    expect_independent_of_threads([&] { return backward(input, shape, 1); });
  }
}

TEST(CrossEntropy, WithoutAnyLabelHasNoMeanAndNoGradient) {
  const Case input{{1, 2, 3, 4}, {kIgnoredLabel, kIgnoredLabel}};
  EXPECT_TRUE(std::isnan(forward(input, {2, 2})[0]));
  EXPECT_EQ(backward(input, {2, 2}, 1), Floats(4, 0));
  EXPECT_TRUE(std::isnan(forward({{}, {}}, {0, 5})[0]));
}

TEST(CrossEntropy, RefusesALabelThatIsNoColumnBeforeTouchingAnything) {
  const Floats logits(6, 1);
  for (const std::int32_t wrong : {3, -1, -99, std::numeric_limits<std::int32_t>::max()}) {
    const Labels labels = {0, wrong};
    const float upstream = 1;
    float loss = -7;
    Floats saved(2, -7), dlogits(6, -7);
    EXPECT_THROW(cross_entropy_forward(logits.data(), labels.data(), {2, 3}, &loss, saved.data()),
                 std::logic_error);
    EXPECT_THROW(
        cross_entropy_backward(logits.data(), labels.data(), saved.data(), &upstream, {2, 3}, dlogits.data()),
        std::logic_error);
    EXPECT_EQ(loss, -7);
    EXPECT_EQ(saved, Floats(2, -7));
    EXPECT_EQ(dlogits, Floats(6, -7));
  }
}

}  // namespace
}  // namespace terrace::math

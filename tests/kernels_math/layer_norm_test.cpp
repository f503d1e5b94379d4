#include "backends/cpu/math/layer_norm.hpp"

#include <stdexcept>

#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

constexpr float kEpsilon = 1e-5f;
const std::vector<Rows> kShapes = {{0, 5},  {1, 1},     {2, 3},     {5, 16},
                                   {7, 33}, {100, 768}, {3000, 65}, {3, 5001}};

struct Inputs {
  Floats x, gamma, beta, dy;
};

Inputs make_inputs(Rows shape, unsigned seed) {
  const std::int64_t n = shape.rows * shape.columns;
  return {random_floats(n, seed, -1, 3), random_floats(shape.columns, seed + 1),
          random_floats(shape.columns, seed + 2), random_floats(n, seed + 3)};
}

struct Outputs {
  Floats y, mean, reciprocal, dx, dgamma, dbeta;
};

Outputs run(const Inputs& in, Rows shape) {
  const auto rows = static_cast<std::size_t>(shape.rows), columns = static_cast<std::size_t>(shape.columns);
  Outputs out{Floats(in.x.size(), -7), Floats(rows, -7),    Floats(rows, -7),
              Floats(in.x.size(), -7), Floats(columns, -7), Floats(columns, -7)};
  const LayerNormMoments moments{out.mean.data(), out.reciprocal.data()};
  layer_norm_forward(in.x.data(), in.gamma.data(), in.beta.data(), shape, kEpsilon, out.y.data(), moments);
  layer_norm_backward(in.x.data(), in.gamma.data(), moments, in.dy.data(), shape,
                      {out.dx.data(), out.dgamma.data(), out.dbeta.data()});
  return out;
}

struct Oracle {
  Doubles y, mean, reciprocal;
};

Oracle oracle(const Doubles& x, const Doubles& gamma, const Doubles& beta, Rows shape) {
  Oracle out{Doubles(x.size()), {}, {}};
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const double* row = x.data() + r * shape.columns;
    double mean = 0, variance = 0;
    for (std::int64_t c = 0; c < shape.columns; ++c) mean += row[c] / static_cast<double>(shape.columns);
    for (std::int64_t c = 0; c < shape.columns; ++c) {
      variance += (row[c] - mean) * (row[c] - mean) / static_cast<double>(shape.columns);
    }
    const double reciprocal = 1 / std::sqrt(variance + double{kEpsilon});
    for (std::int64_t c = 0; c < shape.columns; ++c) {
      out.y[r * shape.columns + c] = (row[c] - mean) * reciprocal * gamma[c] + beta[c];
    }
    out.mean.push_back(mean);
    out.reciprocal.push_back(reciprocal);
  }
  return out;
}

TEST(LayerNorm, MatchesTheOracle) {
  at_each_level([] {
    for (const Rows shape : kShapes) {
      if (shape.columns == 1) continue;  // its deviation is all epsilon and rounding
      const Inputs in = make_inputs(shape, 1);
      const Outputs got = run(in, shape);
      const Oracle want = oracle(widen(in.x), widen(in.gamma), widen(in.beta), shape);
      EXPECT_TRUE(all_near(got.y, want.y, 3e-6));
      EXPECT_TRUE(all_near(got.mean, want.mean, 1e-6));
      EXPECT_TRUE(all_near(got.reciprocal, want.reciprocal, 2e-6));
    }
  });
}

TEST(LayerNorm, OfOneColumnIsTheShift) {
  const Inputs in{{3, 5}, {2}, {0.5f}, {1, 1}};
  const Outputs got = run(in, {2, 1});
  EXPECT_EQ(got.y, (Floats{0.5f, 0.5f}));
  EXPECT_EQ(got.dx, (Floats{0, 0}));
  EXPECT_EQ(got.dgamma, (Floats{0}));
  EXPECT_EQ(got.dbeta, (Floats{2}));
}

TEST(LayerNorm, KeepsItsAccuracyFarFromZero) {
  const Rows shape{1, 1000};
  Inputs in = make_inputs(shape, 2);
  for (float& value : in.x) value = 4096 + std::floor(value * 16) / 16;  // exact in a float
  EXPECT_TRUE(
      all_near(run(in, shape).y, oracle(widen(in.x), widen(in.gamma), widen(in.beta), shape).y, 1e-3));
}

TEST(LayerNorm, GradientsAreThoseOfTheForwardPass) {
  at_each_level([] {
    for (const Rows shape : {Rows{2, 3}, Rows{3, 16}, Rows{4, 37}}) {
      const Inputs in = make_inputs(shape, 3);
      const Outputs got = run(in, shape);
      const Doubles x = widen(in.x), gamma = widen(in.gamma), beta = widen(in.beta);
      const auto loss = [&](const Doubles& a, const Doubles& b, const Doubles& c) {
        return weighted_sum(oracle(a, b, c, shape).y, in.dy);
      };
      EXPECT_TRUE(all_near(
          got.dx, numerical_gradient([&](const Doubles& v) { return loss(v, gamma, beta); }, x), 2e-5));
      EXPECT_TRUE(all_near(
          got.dgamma, numerical_gradient([&](const Doubles& v) { return loss(x, v, beta); }, gamma), 1e-5));
      EXPECT_TRUE(all_near(
          got.dbeta, numerical_gradient([&](const Doubles& v) { return loss(x, gamma, v); }, beta), 1e-5));
    }
  });
}

TEST(LayerNorm, ParameterGradientsAddUpManyRows) {
  at_each_level([] {
    for (const Rows shape : kShapes) {
      const Inputs in = make_inputs(shape, 4);
      const Outputs got = run(in, shape);
      Doubles dgamma(in.gamma.size()), dbeta(in.gamma.size());
      for (std::int64_t i = 0; i < shape.rows * shape.columns; ++i) {
        const std::int64_t r = i / shape.columns, c = i % shape.columns;
        dgamma[c] += double{in.dy[i]} * (double{in.x[i]} - double{got.mean[r]}) * double{got.reciprocal[r]};
        dbeta[c] += in.dy[i];
      }
      EXPECT_TRUE(all_near(got.dgamma, dgamma, 1e-5 * std::sqrt(double(shape.rows) + 1)));
      EXPECT_TRUE(all_near(got.dbeta, dbeta, 1e-5 * std::sqrt(double(shape.rows) + 1)));
    }
  });
}

TEST(LayerNorm, InPlaceGivesTheSameBits) {
  for (const Rows shape : kShapes) {
    Inputs in = make_inputs(shape, 5);
    Outputs got = run(in, shape);
    const Floats x = in.x, dgamma = got.dgamma;
    const LayerNormMoments moments{got.mean.data(), got.reciprocal.data()};
    layer_norm_forward(in.x.data(), in.gamma.data(), in.beta.data(), shape, kEpsilon, in.x.data(), moments);
    EXPECT_TRUE(same_bits(in.x, got.y));
    layer_norm_backward(x.data(), in.gamma.data(), moments, in.dy.data(), shape,
                        {in.dy.data(), got.dgamma.data(), got.dbeta.data()});
    EXPECT_TRUE(same_bits(in.dy, got.dx));
    EXPECT_TRUE(same_bits(got.dgamma, dgamma));
  }
}

TEST(LayerNorm, RowsDoNotDependOnTheNumberOfThreads) {
  const Rows shape{300, 333};
  const Inputs in = make_inputs(shape, 6);
  expect_independent_of_threads([&] { return run(in, shape).y; });
  expect_independent_of_threads([&] { return run(in, shape).dx; });
}

TEST(LayerNorm, ParameterGradientsAreTheSameBitsForTheSameNumberOfThreads) {
  const Rows shape{300, 333};
  const Inputs in = make_inputs(shape, 7);
  for (const int count : {1, 2, 3}) {
    const Threads threads(count);
    const Outputs first = run(in, shape), again = run(in, shape);
    EXPECT_TRUE(same_bits(first.dgamma, again.dgamma));
    EXPECT_TRUE(same_bits(first.dbeta, again.dbeta));
  }
}

TEST(LayerNorm, RefusesRowsWithoutColumns) {
  EXPECT_THROW(run(make_inputs({2, 0}, 8), {2, 0}), std::logic_error);
}

}  // namespace
}  // namespace terrace::math

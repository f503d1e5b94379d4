#include <stdexcept>

#include "backends/cpu/math/adam.hpp"
#include "backends/cpu/math/sgd.hpp"
#include "support.hpp"

namespace terrace::math {
namespace {
using namespace test;

constexpr int kSteps = 5;

/// The gradient of each step: some of it large, some tiny, some zero.
Floats gradient_of(std::int64_t n, int step) {
  Floats g = random_floats(n, static_cast<unsigned>(100 + step));
  for (std::size_t i = 0; i < g.size(); i += 7) g[i] *= 1e-4f;
  for (std::size_t i = 3; i < g.size(); i += 11) g[i] = 0;
  return g;
}

/// Weights and velocity, one after the other.
Floats run_sgd(std::int64_t n, const SgdOptions& options) {
  Floats weights = random_floats(n, 1), velocity(weights.size());
  for (int step = 1; step <= kSteps; ++step) {
    sgd(weights.data(), velocity.data(), gradient_of(n, step).data(), n, options);
  }
  weights.insert(weights.end(), velocity.begin(), velocity.end());
  return weights;
}

Doubles sgd_oracle(std::int64_t n, const SgdOptions& options) {
  Doubles w = widen(random_floats(n, 1)), v(w.size());
  for (int step = 1; step <= kSteps; ++step) {
    const Floats g = gradient_of(n, step);
    for (std::size_t i = 0; i < w.size(); ++i) {
      v[i] = double{options.momentum} * v[i] + double{g[i]} + double{options.weight_decay} * w[i];
      w[i] -= double{options.rate} * v[i];
    }
  }
  w.insert(w.end(), v.begin(), v.end());
  return w;
}

TEST(Sgd, FollowsItsDefinition) {
  at_each_level([] {
    for (const std::int64_t n : kSizes) {
      for (const SgdOptions& options :
           {SgdOptions{0.1f, 0, 0}, SgdOptions{0.1f, 0.9f, 0}, SgdOptions{0.05f, 0.9f, 0.01f}}) {
        EXPECT_TRUE(all_near(run_sgd(n, options), sgd_oracle(n, options), 2e-6));
      }
    }
  });
}

TEST(Sgd, NeedsNoVelocityWithoutMomentum) {
  const SgdOptions options{0.1f, 0, 0.02f};
  Floats plain = random_floats(1000, 1), with = plain, velocity(1000);
  const Floats g = gradient_of(1000, 1);
  sgd(plain.data(), nullptr, g.data(), 1000, options);
  sgd(with.data(), velocity.data(), g.data(), 1000, options);
  EXPECT_TRUE(all_near(plain, widen(with), 1e-7));
  EXPECT_THROW(sgd(plain.data(), nullptr, g.data(), 1000, {0.1f, 0.9f, 0}), std::logic_error);
}

TEST(Sgd, DoesNotDependOnTheNumberOfThreads) {
  expect_independent_of_threads([] { return run_sgd(70001, {0.1f, 0.9f, 0.01f}); });
}

/// Weights, first and second moments, one after the other.
Floats run_adam(std::int64_t n, const AdamOptions& options) {
  Floats weights = random_floats(n, 2), first(weights.size()), second(weights.size());
  for (int step = 1; step <= kSteps; ++step) {
    adam(weights.data(), {first.data(), second.data()}, gradient_of(n, step).data(), n, step, options);
  }
  weights.insert(weights.end(), first.begin(), first.end());
  weights.insert(weights.end(), second.begin(), second.end());
  return weights;
}

Doubles adam_oracle(std::int64_t n, const AdamOptions& options) {
  const double rate = options.rate, beta1 = options.beta1, beta2 = options.beta2,
               decay = options.weight_decay;
  Doubles w = widen(random_floats(n, 2)), m(w.size()), v(w.size());
  for (int step = 1; step <= kSteps; ++step) {
    const Floats gradient = gradient_of(n, step);
    for (std::size_t i = 0; i < w.size(); ++i) {
      double g = gradient[i];
      if (options.decay == WeightDecay::l2) g += decay * w[i];
      if (options.decay == WeightDecay::decoupled) w[i] -= rate * decay * w[i];
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double corrected_m = m[i] / (1 - std::pow(beta1, step)),
                   corrected_v = v[i] / (1 - std::pow(beta2, step));
      w[i] -= rate * corrected_m / (std::sqrt(corrected_v) + double{options.epsilon});
    }
  }
  w.insert(w.end(), m.begin(), m.end());
  w.insert(w.end(), v.begin(), v.end());
  return w;
}

TEST(Adam, FollowsItsDefinition) {
  at_each_level([] {
    for (const std::int64_t n : kSizes) {
      for (const WeightDecay decay : {WeightDecay::l2, WeightDecay::decoupled}) {
        for (const float weight_decay : {0.0f, 0.1f}) {
          const AdamOptions options{.rate = 0.01f, .weight_decay = weight_decay, .decay = decay};
          EXPECT_TRUE(all_near(run_adam(n, options), adam_oracle(n, options), 2e-6));
        }
      }
    }
  });
}

TEST(Adam, KindsOfDecayDiffer) {
  const AdamOptions l2{.weight_decay = 0.1f, .decay = WeightDecay::l2};
  const AdamOptions decoupled{.weight_decay = 0.1f, .decay = WeightDecay::decoupled};
  EXPECT_FALSE(same_bits(run_adam(100, l2), run_adam(100, decoupled)));
}

TEST(Adam, FirstStepMovesEveryWeightByTheRate) {
  Floats weights = {1, 1, 1}, first(3), second(3);
  const Floats gradient = {5, -0.01f, 0};
  adam(weights.data(), {first.data(), second.data()}, gradient.data(), 3, 1, {.rate = 0.1f});
  EXPECT_TRUE(all_near(weights, {0.9, 1.1, 1}, 1e-6));
}

TEST(Adam, DoesNotDependOnTheNumberOfThreads) {
  expect_independent_of_threads([] { return run_adam(70001, {.rate = 0.01f, .weight_decay = 0.1f}); });
}

TEST(Adam, CountsItsStepsFromOne) { EXPECT_THROW(adam(nullptr, {}, nullptr, 0, 0, {}), std::logic_error); }

}  // namespace
}  // namespace terrace::math

// SPDX-License-Identifier: Apache-2.0
// The small network, and the agent that learns with it.
#include <gtest/gtest.h>

#include <cmath>

#include "optim/dense_network.hpp"
#include "planners/deeptm/agent.hpp"

namespace terrace {
namespace {

using optim::DenseNetwork;
using Example = DenseNetwork::Example;

std::vector<float> some_inputs(std::size_t count, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<float> inputs(count);
  for (float& input : inputs) input = static_cast<float>(random.below(2001)) / 1000 - 1;
  return inputs;
}

/// The gradient that one step of training follows is that of the error: Adam's first step goes against the
/// sign of every weight's gradient.
TEST(DenseNetwork, FollowsTheGradientOfItsError) {
  const std::vector<float> input = some_inputs(5, 3);
  const Example example{input, 1, 2};
  const auto error_with = [&](const std::vector<float>& weights) {
    DenseNetwork changed({5, 7, 6, 3}, 11);
    EXPECT_TRUE(changed.set_weights(weights));
    std::vector<float> output(3);
    changed.evaluate(input, output);
    return std::abs(output[1] - 2.0F);
  };
  DenseNetwork network({5, 7, 6, 3}, 11);
  const std::vector<float> before = network.weights();
  network.train({&example, 1}, 1e-3F);
  int moved = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    std::vector<float> more = before, less = before;
    more[i] += 1e-2F;
    less[i] -= 1e-2F;
    const float slope = error_with(more) - error_with(less), step = network.weights()[i] - before[i];
    if (std::abs(slope) < 1e-4F) continue;  // too flat to tell in single precision
    ++moved;
    EXPECT_LT(slope * step, 0) << "weight " << i;
  }
  EXPECT_GT(moved, 20);
}

TEST(DenseNetwork, LearnsWhatNoSingleLayerCan) {
  DenseNetwork network({2, 16, 16, 1}, 5);
  const std::vector<std::vector<float>> inputs{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  std::vector<Example> batch;
  for (const auto& input : inputs) batch.push_back({input, 0, input[0] == input[1] ? 0.0F : 1.0F});
  for (int i = 0; i < 2000; ++i) network.train(batch, 3e-3F);
  for (const Example& example : batch) {
    float output = 0;
    network.evaluate(example.input, {&output, 1});
    EXPECT_NEAR(output, example.target, 0.05);
  }
}

TEST(DenseNetwork, GivesTheSameBitsForTheSameSeed) {
  DenseNetwork one({3, 8, 2}, 7), other({3, 8, 2}, 7), stranger({3, 8, 2}, 8);
  EXPECT_NE(one.weights(), stranger.weights());
  const std::vector<float> input = some_inputs(3, 1);
  const Example example{input, 0, 1};
  for (int i = 0; i < 50; ++i) {
    one.train({&example, 1}, 1e-2F);
    other.train({&example, 1}, 1e-2F);
  }
  EXPECT_EQ(one.weights(), other.weights());
  EXPECT_FALSE(one.set_weights({}));
}

/// A corridor of three places: to the right is worth nothing until its end, to the left a little at once.
TEST(Agent, LearnsToWaitForALaterReward) {
  deeptm::Learning learning;
  learning.every = 1;
  deeptm::Agent agent(3, 2, learning, 3);
  SplitMix random(9);
  const auto state_of = [](int place) {
    std::vector<float> state(3);
    state[static_cast<std::size_t>(place)] = 1;
    return state;
  };
  for (int episode = 0; episode < 600; ++episode) {
    for (int place = 0; place < 3;) {
      const auto action = static_cast<std::uint32_t>(random.below(2));
      const bool ends = action == 0 || place == 2;
      const float reward = action == 0 ? 0.2F : place == 2 ? 1.0F : 0.0F;
      agent.remember(state_of(place), action, reward, ends ? std::vector<float>{} : state_of(place + 1));
      place = ends ? 3 : place + 1;
    }
  }
  for (int place = 0; place < 3; ++place) EXPECT_EQ(agent.best(state_of(place)), 1U) << place;
}

}  // namespace
}  // namespace terrace

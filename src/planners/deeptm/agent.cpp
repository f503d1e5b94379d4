// SPDX-License-Identifier: Apache-2.0
#include "planners/deeptm/agent.hpp"

#include <algorithm>

namespace terrace::deeptm {
namespace {

/// 004 has three dense layers and gives no sizes.
constexpr std::size_t kHidden = 32;

}  // namespace

Agent::Agent(std::size_t state, std::size_t actions, const Learning& learning, std::uint64_t seed)
    : learning_(learning),
      network_({state, kHidden, kHidden, actions}, seed),
      target_(network_),
      random_(seed + 1),
      values_(actions) {}

std::uint32_t Agent::best(std::span<const float> state) const {
  network_.evaluate(state, values_);
  return static_cast<std::uint32_t>(std::max_element(values_.begin(), values_.end()) - values_.begin());
}

bool Agent::set_weights(std::span<const float> weights) {
  if (!network_.set_weights(weights)) return false;
  target_ = network_;
  return true;
}

void Agent::remember(std::span<const float> state, std::uint32_t action, float reward,
                     std::span<const float> after) {
  if (replay_.size() <= next_) replay_.emplace_back();
  Transition& kept = replay_[next_];
  kept.state.assign(state.begin(), state.end());
  kept.after.assign(after.begin(), after.end());
  kept.action = action;
  kept.reward = reward;
  next_ = (next_ + 1) % learning_.replay;
  if (++remembered_ % learning_.every == 0 && replay_.size() >= learning_.batch) train();
}

void Agent::train() {
  std::vector<optim::DenseNetwork::Example> batch;
  for (std::size_t i = 0; i < learning_.batch; ++i) {
    const Transition& drawn = replay_[random_.below(replay_.size())];
    float target = drawn.reward;
    if (!drawn.after.empty()) {
      target_.evaluate(drawn.after, values_);
      target += learning_.discount * *std::max_element(values_.begin(), values_.end());
    }
    batch.push_back({drawn.state, drawn.action, target});
  }
  loss_ = network_.train(batch, learning_.rate);
  if (++trained_ % learning_.renewal == 0) target_ = network_;
}

}  // namespace terrace::deeptm

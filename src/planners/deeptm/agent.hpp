// SPDX-License-Identifier: Apache-2.0
// A deep Q-learning agent (004 section IV-C): it guesses what each action will earn from here to the end of
// the episode, and learns from what it did earn.
//
//   transition   a state, the action taken there, what it earned and the state after it
//   target       a copy of the network, renewed now and then, that says what the state after is worth
//
// The numbers are those of 004 Table II where it has them. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "optim/dense_network.hpp"

namespace terrace::deeptm {

struct Learning {
  std::size_t replay = 2000;  ///< transitions that are remembered; Table II has 100
  std::size_t batch = 32;
  float rate = 1e-3F;  ///< Table II has 1e-4
  float discount = 0.99F;
  std::uint32_t every = 8;      ///< transitions between two steps of training
  std::uint32_t renewal = 200;  ///< steps of training between two targets
};

class Agent {
 public:
  Agent(std::size_t state, std::size_t actions, const Learning& learning, std::uint64_t seed);

  std::size_t actions() const { return network_.outputs(); }
  /// The action that is expected to earn most; the first of equals.
  std::uint32_t best(std::span<const float> state) const;
  /// Remembers a transition; no state after it: the episode is over.
  void remember(std::span<const float> state, std::uint32_t action, float reward,
                std::span<const float> after);

  const std::vector<float>& weights() const { return network_.weights(); }
  bool set_weights(std::span<const float> weights);
  /// The mean squared error of the last step of training.
  float loss() const { return loss_; }

 private:
  struct Transition {
    std::vector<float> state, after;
    std::uint32_t action = 0;
    float reward = 0;
  };
  void train();

  Learning learning_;
  optim::DenseNetwork network_, target_;
  SplitMix random_;
  std::vector<Transition> replay_;
  std::size_t next_ = 0;  ///< the transition that is forgotten next
  std::uint32_t remembered_ = 0, trained_ = 0;
  float loss_ = 0;
  mutable std::vector<float> values_;
};

}  // namespace terrace::deeptm

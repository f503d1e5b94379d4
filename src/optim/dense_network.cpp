// SPDX-License-Identifier: Apache-2.0
#include "optim/dense_network.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/random.hpp"

namespace terrace::optim {

DenseNetwork::DenseNetwork(std::vector<std::size_t> sizes, std::uint64_t seed) : sizes_(std::move(sizes)) {
  check(sizes_.size() >= 2, "a network has an input and an output");
  std::size_t count = 0;
  for (std::size_t i = 0; i + 1 < sizes_.size(); ++i) {
    const std::size_t in = sizes_[i], out = sizes_[i + 1];
    check(in > 0 && out > 0, "no layer is empty");
    layers_.push_back({in, out, count, count + in * out});
    count += in * out + out;
  }
  weights_.resize(count);
  gradient_.resize(count);
  mean_.resize(count);
  square_.resize(count);
  SplitMix random(seed);
  for (const Layer& layer : layers_) {
    // Glorot's uniform weights keep the spread of activations alike from layer to layer; biases begin at 0.
    const double limit = std::sqrt(6.0 / static_cast<double>(layer.in + layer.out));
    for (std::size_t i = 0; i < layer.in * layer.out; ++i) {
      const double unit = static_cast<double>(random.next() >> 11) * 0x1p-53;
      weights_[layer.weights + i] = static_cast<float>((2 * unit - 1) * limit);
    }
  }
  for (const std::size_t size : sizes_) activations_.emplace_back(size);
}

bool DenseNetwork::set_weights(std::span<const float> weights) {
  if (weights.size() != weights_.size()) return false;
  weights_.assign(weights.begin(), weights.end());
  std::fill(mean_.begin(), mean_.end(), 0.0F);
  std::fill(square_.begin(), square_.end(), 0.0F);
  steps_ = 0;
  return true;
}

void DenseNetwork::forward(std::span<const float> input, std::vector<std::vector<float>>& activations) const {
  check(input.size() == inputs(), "the input is as long as the network's");
  activations[0].assign(input.begin(), input.end());
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const float* biases = weights_.data() + layer.biases;
    activations[l + 1].assign(biases, biases + layer.out);
    float* out = activations[l + 1].data();
    for (std::size_t i = 0; i < layer.in; ++i) {
      const float value = activations[l][i];
      const float* row = weights_.data() + layer.weights + i * layer.out;
      for (std::size_t o = 0; o < layer.out; ++o) out[o] += value * row[o];
    }
    if (l + 1 == layers_.size()) break;
    for (std::size_t o = 0; o < layer.out; ++o) out[o] = std::max(out[o], 0.0F);
  }
}

void DenseNetwork::evaluate(std::span<const float> input, std::span<float> output) const {
  forward(input, activations_);
  std::copy(activations_.back().begin(), activations_.back().end(), output.begin());
}

/// Adds the gradient of one example, whose error is already in error_. pre: forward() was for it
void DenseNetwork::backward(const Example& example, float scale, std::vector<float>& gradient) {
  error_.assign(outputs(), 0.0F);
  error_[example.output] = scale;
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    error_before_.assign(layer.in, 0.0F);
    float* biases = gradient.data() + layer.biases;
    for (std::size_t o = 0; o < layer.out; ++o) biases[o] += error_[o];
    for (std::size_t i = 0; i < layer.in; ++i) {
      const float value = activations_[l][i];
      // A rectifier that is off lets no error through, and its input adds nothing.
      if (l > 0 && value <= 0) continue;
      const float* row = weights_.data() + layer.weights + i * layer.out;
      float* changes = gradient.data() + layer.weights + i * layer.out;
      float sum = 0;
      for (std::size_t o = 0; o < layer.out; ++o) {
        changes[o] += value * error_[o];
        sum += row[o] * error_[o];
      }
      error_before_[i] = sum;
    }
    std::swap(error_, error_before_);
  }
}

float DenseNetwork::train(std::span<const Example> batch, float rate) {
  check(!batch.empty(), "a batch has examples");
  std::fill(gradient_.begin(), gradient_.end(), 0.0F);
  float squares = 0;
  for (const Example& example : batch) {
    forward(example.input, activations_);
    const float error = activations_.back()[example.output] - example.target;
    squares += error * error;
    backward(example, std::clamp(error, -1.0F, 1.0F) / static_cast<float>(batch.size()), gradient_);
  }
  step(rate);
  return squares / static_cast<float>(batch.size());
}

void DenseNetwork::step(float rate) {
  constexpr float kMean = 0.9F, kSquare = 0.999F, kSmall = 1e-8F;
  ++steps_;
  const auto count = static_cast<float>(steps_);
  const float unbiased = rate * std::sqrt(1 - std::pow(kSquare, count)) / (1 - std::pow(kMean, count));
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    mean_[i] = kMean * mean_[i] + (1 - kMean) * gradient_[i];
    square_[i] = kSquare * square_[i] + (1 - kSquare) * gradient_[i] * gradient_[i];
    weights_[i] -= unbiased * mean_[i] / (std::sqrt(square_[i]) + kSmall);
  }
}

}  // namespace terrace::optim

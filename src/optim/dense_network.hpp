// SPDX-License-Identifier: Apache-2.0
// A small network of dense layers with rectifiers between them, trained by Adam on batches.
//
// It has a few thousand weights, so a plain implementation takes microseconds, and every sum has a fixed
// order: the same seed and data give the same bits with any compiler that does not reorder floating-point
// sums. Loops run over outputs, which compilers turn into vector instructions without changing a sum. A plain
// value; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace terrace::optim {

class DenseNetwork {
 public:
  /// `sizes`: of the input, of each hidden layer and of the output. pre: at least two, none zero
  DenseNetwork(std::vector<std::size_t> sizes, std::uint64_t seed);

  std::size_t inputs() const { return sizes_.front(); }
  std::size_t outputs() const { return sizes_.back(); }
  const std::vector<std::size_t>& sizes() const { return sizes_; }

  /// What the network says of one input. pre: as many inputs and outputs as it has
  void evaluate(std::span<const float> input, std::span<float> output) const;

  /// One of a batch: after it, `output` of `input` should be nearer to `target`. Other outputs are free.
  struct Example {
    std::span<const float> input;
    std::size_t output;
    float target;
  };
  /// One step of Adam on the mean over the batch of the squared error, whose gradient is cut off at 1.
  /// Returns the mean of squared errors. pre: !batch.empty()
  float train(std::span<const Example> batch, float rate);

  /// All weights in a fixed order. Setting them forgets the means that Adam keeps.
  const std::vector<float>& weights() const { return weights_; }
  /// Returns whether there are as many as the network has.
  bool set_weights(std::span<const float> weights);

 private:
  struct Layer {
    std::size_t in, out;
    std::size_t weights, biases;  ///< where they begin in weights_; by input, then by output
  };
  void forward(std::span<const float> input, std::vector<std::vector<float>>& activations) const;
  void backward(const Example& example, float scale, std::vector<float>& gradient);
  void step(float rate);

  std::vector<std::size_t> sizes_;
  std::vector<Layer> layers_;
  std::vector<float> weights_, gradient_, mean_, square_;
  std::uint32_t steps_ = 0;
  mutable std::vector<std::vector<float>> activations_;  ///< by layer, of the input evaluated last
  std::vector<float> error_, error_before_;
};

}  // namespace terrace::optim

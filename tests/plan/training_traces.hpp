// SPDX-License-Identifier: Apache-2.0
// Items as training makes them: what the forward pass keeps is freed in reverse by the backward pass, beside
// short-lived gradients and workspaces and weights that live all the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "plan/packing.hpp"

namespace terrace::testing {

using Items = std::vector<PackingItem>;

/// `kernels` forward and as many backward; number k is undone by back(k).
class TrainingTrace {
 public:
  explicit TrainingTrace(std::uint32_t kernels) : end_(2 * kernels) {}

  const Items& items() const { return items_; }
  std::uint32_t back(std::uint32_t kernel) const { return end_ - 1 - kernel; }

  void weight(std::uint64_t bytes) { add(bytes, 0, end_ - 1); }
  /// Lives until the update at the end.
  void weight_gradient(std::uint32_t kernel, std::uint64_t bytes) { add(bytes, back(kernel), end_ - 1); }
  /// Kept for the backward pass.
  void activation(std::uint32_t kernel, std::uint64_t bytes) { add(bytes, kernel, back(kernel)); }
  /// Made where the consumer is undone, used where its producer is.
  void gradient(std::uint32_t producer, std::uint32_t consumer, std::uint64_t bytes) {
    add(bytes, back(std::min(consumer, end_ / 2 - 1)), back(producer));
  }
  void forward_only(std::uint32_t first, std::uint32_t last, std::uint64_t bytes) { add(bytes, first, last); }
  void workspace(std::uint32_t kernel, std::uint64_t forward, std::uint64_t backward) {
    add(forward, kernel, kernel);
    add(backward, back(kernel), back(kernel));
  }

 private:
  void add(std::uint64_t bytes, std::uint32_t first, std::uint32_t last) {
    items_.push_back({Bytes{bytes}, first, last});
  }
  std::uint32_t end_;
  Items items_;
};

/// One layer after the other (VGG), sizes at random over two orders of magnitude.
inline Items chain_net(std::uint32_t layers, std::uint64_t seed) {
  SplitMix random(seed);
  TrainingTrace trace(layers);
  for (std::uint32_t k = 0; k < layers; ++k) {
    const std::uint64_t output = (1 + random.below(64)) << (10 + random.below(8));
    const std::uint64_t weight = (1 + random.below(300)) << (10 + random.below(4));
    trace.activation(k, output);
    trace.gradient(k, k + 1, output);
    trace.weight(weight);
    trace.weight_gradient(k, weight);
    trace.workspace(k, 1 + random.below(4u << 20), 1 + random.below(4u << 20));
  }
  return trace.items();
}

/// Bottleneck blocks (ResNet): three convolutions with normalisations, and a shortcut around them whose
/// gradient waits for the block to be undone.
inline Items residual_net(std::uint32_t blocks, std::uint64_t seed) {
  SplitMix random(seed);
  constexpr std::uint32_t kPerBlock = 7;  // conv norm conv norm conv norm add
  TrainingTrace trace(blocks * kPerBlock);
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const std::uint32_t start = block * kPerBlock, stage = 4 * block / blocks;
    const std::uint64_t narrow = (std::uint64_t{25'690'112} >> stage) + random.below(1000), wide = 4 * narrow;
    for (std::uint32_t j = 0; j < kPerBlock; ++j) {
      const std::uint32_t k = start + j;
      const std::uint64_t output = j < 4 ? narrow : wide;
      trace.activation(k, output);
      trace.gradient(k, k + 1, output);
      if (j % 2 == 1) trace.activation(k, 256 + random.below(8192));  // mean and variance
      if (j % 2 == 1 || j == 6) continue;
      const std::uint64_t weight = (std::uint64_t{16'384} << 2 * stage) * (j == 2 ? 9 : 4);
      trace.weight(weight);
      trace.weight_gradient(k, weight);
      trace.workspace(k, narrow / 3 + random.below(1u << 20), narrow / 2 + random.below(1u << 20));
    }
    trace.gradient(start, start + kPerBlock, wide);
  }
  return trace.items();
}

/// Every layer reads all before it in the block (DenseNet): concatenations that grow.
inline Items dense_net(std::uint32_t layers, std::uint64_t seed) {
  SplitMix random(seed);
  TrainingTrace trace(4 * layers);
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const std::uint32_t k = 4 * layer;
    const std::uint64_t plane = 4096 * (4 - 4 * layer / (layers + 1)),
                        joined = (64 + 32 * (layer % 40)) * plane;
    trace.activation(k, joined);
    trace.activation(k + 1, joined);
    trace.gradient(k, k + 1, joined);
    trace.activation(k + 2, 128 * plane);
    trace.gradient(k + 2, k + 3, 128 * plane);
    trace.activation(k + 3, 32 * plane);
    trace.gradient(k + 3, k + 4, 32 * plane);
    trace.forward_only(k, k + 1, 1 + random.below(joined));
    trace.workspace(k + 1, 1 + random.below(joined), 1 + random.below(2 * joined));
  }
  return trace.items();
}

}  // namespace terrace::testing

// A synthetic training step on managed objects: forward, backward and update, hinted as in 003 section III-E.
//
// Tensors carry a stamp in every page, which is checked at each read, so that a step that lost data fails
// instead of looking fast.
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "terrace/manager.hpp"

namespace terrace::bench {

/// A kernel reads `inputs` (outputs of earlier kernels) and its weights, and writes its output.
struct Kernel {
  std::vector<int> inputs;
  Bytes output, weights;
};

struct Network {
  std::string name;
  std::vector<Kernel> kernels;
  /// Returns the bytes that are live at the end of forward, which training needs at least.
  Bytes footprint() const {
    Bytes sum;
    for (const Kernel& kernel : kernels) sum += kernel.output + kernel.weights;
    return sum;
  }
};

/// Builds dense blocks, in which each kernel reads up to four earlier outputs of its block.
inline Network densenet_like() {
  using namespace literals;
  Network network{"densenet-like", {}};
  for (const Bytes size : {8_MiB, 6_MiB, 4_MiB, 3_MiB}) {
    const int first = static_cast<int>(network.kernels.size());
    for (int i = first; i < first + 24; ++i) {
      std::vector<int> inputs;
      for (int back = 1; back <= 4 && i - back >= std::max(first - 1, 0); ++back) inputs.push_back(i - back);
      network.kernels.push_back({inputs, size, 256_KiB});
    }
  }
  return network;
}

/// Builds a chain with large early activations and large late weights.
inline Network vgg_like() {
  using namespace literals;
  Network network{"vgg-like", {}};
  for (const auto& [size, weights, count] :
       {std::tuple{16_MiB, 64_KiB, 12}, {8_MiB, 256_KiB, 20}, {4_MiB, 1_MiB, 32}, {2_MiB, 2_MiB, 12}}) {
    for (int i = 0; i < count; ++i) {
      const int previous = static_cast<int>(network.kernels.size()) - 1;
      network.kernels.push_back(
          {previous < 0 ? std::vector<int>{} : std::vector<int>{previous}, size, weights});
    }
  }
  return network;
}

class Sweep {
 public:
  Sweep(Manager& manager, const Network& network) : network_(network) {
    for (const Kernel& kernel : network.kernels) {
      Tensor& weights = weights_.emplace_back(Tensor{manager.create(kernel.weights).value(), 0});
      run(manager, {}, {&weights});
    }
  }

  /// Runs one training step. Hints are given `ahead` kernels before the use.
  void step(Manager& manager, int ahead) {
    const int count = static_cast<int>(network_.kernels.size());
    manager.step_begin();
    outputs_.assign(network_.kernels.size(), {});
    gradients_.assign(network_.kernels.size(), {});
    for (int i = 0; i < count; ++i) forward(manager, i, ahead);
    for (int i = count - 1; i >= 0; --i) backward(manager, i, ahead);
    manager.step_end();
  }

 private:
  struct Tensor {
    ObjectId object;
    std::uint64_t stamp = 0;
  };

  void forward(Manager& manager, int i, int ahead) {
    const Kernel& kernel = network_.kernels[i];
    if (i + ahead < static_cast<int>(network_.kernels.size())) hint_reads(manager, i + ahead, i);
    Tensor& output = outputs_[i].emplace(Tensor{manager.create(kernel.output).value(), 0});
    manager.will_write(output.object);
    std::vector<Tensor*> reads{&weights_[i]};
    for (const int input : kernel.inputs) reads.push_back(&*outputs_[input]);
    run(manager, reads, {&output});
    manager.archive(weights_[i].object);
    for (const int input : kernel.inputs) manager.archive(outputs_[input]->object);
    manager.layer_end();
  }

  // Reads the activations kept by forward and the gradient of its output, and computes the gradients of its
  // inputs; the former are dead afterwards.
  void backward(Manager& manager, int i, int ahead) {
    const Kernel& kernel = network_.kernels[i];
    if (i - ahead >= 0) hint_reads(manager, i - ahead, i);
    std::vector<Tensor*> reads{&weights_[i], &*outputs_[i]}, writes;
    if (gradients_[i]) reads.push_back(&*gradients_[i]);
    for (const int input : kernel.inputs) {
      if (!gradients_[input])
        gradients_[input] = Tensor{manager.create(network_.kernels[input].output).value(), 0};
      manager.will_write(gradients_[input]->object);
      writes.push_back(&*gradients_[input]);
    }
    run(manager, reads, writes);
    manager.will_write(weights_[i].object);
    run(manager, {}, {&weights_[i]});
    manager.archive(weights_[i].object);
    manager.retire(outputs_[i]->object);
    if (gradients_[i]) manager.retire(gradients_[i]->object);
    manager.layer_end();
  }

  // Hints the tensors that kernel `soon` reads, if they exist when kernel `now` is about to run.
  void hint_reads(Manager& manager, int soon, int now) {
    manager.will_read(weights_[soon].object);
    for (const int input : network_.kernels[soon].inputs) {
      if (input < now || soon < now) manager.will_read(outputs_[input]->object);
    }
    if (soon <= now && outputs_[soon]) manager.will_read(outputs_[soon]->object);
  }

  // Computes for 1.33 times as long as the bytes take from fast memory, and is charged for slow memory where
  // it is used.
  void run(Manager& manager, const std::vector<Tensor*>& reads, const std::vector<Tensor*>& writes) {
    std::vector<Pin> pins;
    std::vector<Bytes> read(manager.tiers()), written(manager.tiers());
    Bytes all_read, all_written;
    for (const Tensor* tensor : reads) {
      const Pin& pin = pins.emplace_back(manager.pin(tensor->object, Access::read).value());
      check_stamps(pin, tensor->stamp);
      read[pin.tier().index] += pin.size(), all_read += pin.size();
    }
    for (Tensor* tensor : writes) {
      const Pin& pin = pins.emplace_back(manager.pin(tensor->object, Access::write).value());
      stamp(pin, tensor->stamp = ++stamps_);
      written[pin.tier().index] += pin.size(), all_written += pin.size();
    }
    const Seconds compute = 1.33 * (all_read / BytesPerSecond{13e9} + all_written / BytesPerSecond{10e9});
    const auto began = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - began < compute) {
    }
    for (std::uint32_t tier = 1; tier < manager.tiers(); ++tier)
      manager.tier({tier}).charge(read[tier], written[tier], compute);
  }

  static constexpr std::size_t kPage = 4096;
  static void stamp(const Pin& pin, std::uint64_t value) {
    for (std::size_t at = 0; at < pin.size().count; at += kPage)
      *reinterpret_cast<std::uint64_t*>(pin.data() + at) = value + at;
  }
  static void check_stamps(const Pin& pin, std::uint64_t value) {
    for (std::size_t at = 0; at < pin.size().count; at += kPage) {
      if (*reinterpret_cast<const std::uint64_t*>(pin.data() + at) != value + at)
        throw std::runtime_error("a tensor lost its contents");
    }
  }

  const Network& network_;
  std::vector<Tensor> weights_;
  std::vector<std::optional<Tensor>> outputs_, gradients_;
  std::uint64_t stamps_ = 0;
};

}  // namespace terrace::bench

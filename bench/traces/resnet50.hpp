// The allocations of training ResNet-50 on 224x224 images in single precision, in the order a framework makes
// them: parameters and momentum stay; each layer's output and saved statistics live from its forward to its
// backward; gradients of activations and workspaces are temporary; gradients of parameters live until the
// update. ReLU and the residual addition work in place, as usual.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace terrace::bench {

class ResNet50 {
 public:
  ResNet50(std::uint64_t batch, int steps) : batch_(batch) {
    trace_.name = "training: ResNet-50, batch " + std::to_string(batch) + ", " + std::to_string(steps) +
                  " steps of SGD with momentum";
    build();
    for (int step = 0; step < steps; ++step) train();
    for (const std::uint32_t id : parameters_) trace_.free(id);
  }
  const Trace& trace() const { return trace_; }

 private:
  /// A convolution and the batch normalisation behind it.
  struct Layer {
    std::uint64_t in, out, kernel, size;  ///< channels, kernel width, height = width of the output
    std::uint64_t in_size;
    std::uint64_t weight_bytes() const { return 4 * in * out * kernel * kernel; }
  };
  struct Saved {
    std::uint32_t convolved, mean, deviation, normalised;
  };
  /// 1x1, 3x3, 1x1, and a 1x1 on the shortcut where the shape changes.
  struct Block {
    std::vector<Layer> path;
    std::vector<Layer> shortcut;
  };
  using Ids = std::vector<std::uint32_t>;

  std::uint64_t activation(std::uint64_t channels, std::uint64_t size) const {
    return 4 * batch_ * channels * size * size;
  }

  void parameter(std::uint64_t bytes) {
    for (int copy = 0; copy < 2; ++copy) parameters_.push_back(trace_.allocate(bytes));  // value, momentum
  }
  void parameters(const Layer& layer) {
    parameter(layer.weight_bytes());
    for (int i = 0; i < 2; ++i) parameter(4 * layer.out);                               // scale, shift
    for (int i = 0; i < 2; ++i) parameters_.push_back(trace_.allocate(4 * layer.out));  // running statistics
  }

  void build() {
    parameters(stem_);
    std::uint64_t in = 64, size = 56;
    const int depths[] = {3, 4, 6, 3};
    for (int stage = 0; stage < 4; ++stage) {
      const std::uint64_t width = 64u << stage;
      for (int i = 0; i < depths[stage]; ++i) {
        const std::uint64_t in_size = size;
        if (i == 0 && stage > 0) size /= 2;
        Block block{{{in, width, 1, in_size, in_size},
                     {width, width, 3, size, in_size},
                     {width, 4 * width, 1, size, size}},
                    {}};
        if (i == 0) block.shortcut = {{in, 4 * width, 1, size, in_size}};
        for (const Layer& layer : block.path) parameters(layer);
        for (const Layer& layer : block.shortcut) parameters(layer);
        blocks_.push_back(block);
        in = 4 * width;
      }
    }
    parameter(4 * 2048 * 1000);
    parameter(4 * 1000);
  }

  // What the convolution library asks for while it runs; 1x1 kernels need none.
  std::uint64_t workspace(const Layer& layer) const {
    return layer.kernel == 1 ? 0 : 4 * 16 * (layer.in * layer.out + 2 * layer.size * layer.size * layer.in);
  }
  template <class Body>
  void with_workspace(const Layer& layer, const Body& body) {
    const std::uint64_t bytes = workspace(layer);
    if (bytes == 0) return body();
    const std::uint32_t id = trace_.allocate(bytes);
    body();
    trace_.free(id);
  }

  Saved forward(const Layer& layer) {
    Saved saved{};
    with_workspace(layer, [&] { saved.convolved = trace_.allocate(activation(layer.out, layer.size)); });
    saved.mean = trace_.allocate(4 * layer.out);
    saved.deviation = trace_.allocate(4 * layer.out);
    saved.normalised = trace_.allocate(activation(layer.out, layer.size));
    return saved;
  }

  // Takes the gradient of the layer's output, returns that of its input. The layer's input is freed by the
  // layer that made it.
  std::uint32_t backward(const Layer& layer, const Saved& saved, std::uint32_t gradient) {
    const std::uint32_t inner = trace_.allocate(activation(layer.out, layer.size));
    for (int i = 0; i < 2; ++i) gradients_.push_back(trace_.allocate(4 * layer.out));
    trace_.free(gradient);
    for (const std::uint32_t id : {saved.normalised, saved.deviation, saved.mean, saved.convolved})
      trace_.free(id);
    std::uint32_t outer = 0;
    with_workspace(layer, [&] { outer = trace_.allocate(activation(layer.in, layer.in_size)); });
    with_workspace(layer, [&] { gradients_.push_back(trace_.allocate(layer.weight_bytes())); });
    trace_.free(inner);
    return outer;
  }

  std::uint32_t backward(const std::vector<Layer>& layers, const std::vector<Saved>& saved,
                         std::uint32_t gradient) {
    for (std::size_t i = layers.size(); i-- > 0;) gradient = backward(layers[i], saved[i], gradient);
    return gradient;
  }

  void train() {
    const Ids input{trace_.allocate(activation(3, 224)), trace_.allocate(8 * batch_)};
    const Saved stem = forward(stem_);
    const Ids pooled{trace_.allocate(activation(64, 56)), trace_.allocate(2 * activation(64, 56))};
    std::vector<std::vector<Saved>> paths(blocks_.size()), shortcuts(blocks_.size());
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      for (const Layer& layer : blocks_[b].path) paths[b].push_back(forward(layer));
      for (const Layer& layer : blocks_[b].shortcut) shortcuts[b].push_back(forward(layer));
    }
    std::uint32_t gradient = head();
    for (std::size_t b = blocks_.size(); b-- > 0;) gradient = backward(b, paths[b], shortcuts[b], gradient);
    for (const std::uint32_t id : {pooled[1], pooled[0], gradient}) trace_.free(id);
    trace_.free(backward(stem_, stem, trace_.allocate(activation(64, 112))));
    for (const std::uint32_t id : input) trace_.free(id);
    for (const std::uint32_t id : gradients_) trace_.free(id);  // each parameter is updated in its place
    gradients_.clear();
  }

  std::uint32_t backward(std::size_t b, const std::vector<Saved>& path, const std::vector<Saved>& shortcut,
                         std::uint32_t gradient) {
    const Block& block = blocks_[b];
    // Both ways need the gradient of the sum: the shortcut works on a copy.
    const std::uint32_t copy = trace_.allocate(activation(block.path.back().out, block.path.back().size));
    const std::uint32_t around = backward(block.shortcut, shortcut, copy);
    const std::uint32_t through = backward(block.path, path, gradient);
    trace_.free(around);  // added into the other
    return through;
  }

  // Average pooling, the classifier and the loss, forward and backward: the gradient of the last block.
  std::uint32_t head() {
    const Ids saved{trace_.allocate(4 * batch_ * 2048), trace_.allocate(4 * batch_ * 1000),
                    trace_.allocate(4 * batch_ * 1000), trace_.allocate(4)};
    const std::uint32_t scores = trace_.allocate(4 * batch_ * 1000);
    gradients_.push_back(trace_.allocate(4 * 2048 * 1000));
    gradients_.push_back(trace_.allocate(4 * 1000));
    const std::uint32_t features = trace_.allocate(4 * batch_ * 2048);
    for (const std::uint32_t id : saved) trace_.free(id);
    trace_.free(scores);
    const std::uint32_t gradient = trace_.allocate(activation(2048, 7));
    trace_.free(features);
    return gradient;
  }

  const Layer stem_{3, 64, 7, 112, 224};
  std::uint64_t batch_;
  std::vector<Block> blocks_;
  Ids parameters_, gradients_;
  Trace trace_;
};

}  // namespace terrace::bench

// Random valid graphs of foreign kernels, for property tests of everything that takes a graph.
//
// Kernels read tensors produced before them, half of the time recent ones, so that graphs are deep rather
// than flat. Some write a persistent tensor in place, as updates do, and it may be read again afterwards. The
// same options and seed give the same graph.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

struct RandomGraphOptions {
  std::uint32_t kernels = 12;
  std::uint32_t max_fan_in = 3;    ///< inputs of a kernel: uniform from 1
  std::uint32_t max_fan_out = 2;   ///< new tensors of a kernel: uniform from 1
  Bytes least{64}, most{65536};    ///< size of a tensor, log-uniform
  double persistent_share = 0.25;  ///< share of inputs that are persistent tensors
  double in_place_share = 0.3;  ///< share of kernels that may write their first output over their first input
  double update_share = 0.15;   ///< share of kernels that write over a persistent tensor
  double rewrite_share = 0.1;   ///< share of kernels that also overwrite an earlier tensor, read or not
  double workspace_share = 0.1;  ///< share of kernels with a workspace
  double result_share = 0.1;     ///< share of tensors that are results
};

class RandomGraph {
 public:
  RandomGraph(const RandomGraphOptions& options, std::uint64_t seed) : options_(options), random_(seed) {}

  Graph run() {
    graph_.name = "random";
    for (std::uint32_t i = 0; i < 1 + options_.kernels / 8; ++i) made_.push_back(given("input", false));
    for (std::uint32_t i = 0; i < 1 + options_.kernels / 4; ++i) kept_.push_back(given("weight", true));
    for (std::uint32_t k = 0; k < options_.kernels; ++k) {
      if (k % 3 == 0) graph_.layers.push_back("layer" + std::to_string(k / 3));
      graph_.kernels.push_back(chance(options_.update_share) ? update(k) : compute(k));
    }
    // Every graph has a result.
    if (graph_.results.empty() && !graph_.kernels.empty()) {
      graph_.results.push_back(graph_.kernels.back().outputs[0].tensor);
    }
    return graph_;
  }

 private:
  bool chance(double share) { return std::uniform_real_distribution<double>(0, 1)(random_) < share; }
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }

  Bytes size() {
    const auto log = [](Bytes bytes) { return std::log2(static_cast<double>(bytes.count)); };
    std::uniform_real_distribution<double> exponent(log(options_.least), log(options_.most));
    return {static_cast<std::uint64_t>(std::llround(std::exp2(exponent(random_))))};
  }

  TensorId tensor(const std::string& stem, Bytes bytes, TensorKind kind) {
    const TensorId id{static_cast<std::uint32_t>(graph_.tensors.size())};
    Tensor made;
    made.name = stem + std::to_string(id.index);
    made.shape = {static_cast<std::int64_t>(bytes.count)};
    made.type = DataType::u8;
    made.kind = kind;
    made.bytes = bytes;
    graph_.tensors.push_back(made);
    return id;
  }

  TensorId given(const std::string& stem, bool persistent) {
    // Some persistent tensors are constants that no kernel writes.
    const bool weight = persistent && below(6) > 0;
    const TensorId id = tensor(stem, size(), weight ? TensorKind::weight : TensorKind::input);
    graph_[id].persistent = persistent;
    return id;
  }

  Operand whole(TensorId id) const { return {id, graph_[id].shape, graph_[id].bytes, {}}; }

  TensorId any_made() {
    const std::size_t recent = std::min<std::size_t>(made_.size(), 4);
    return chance(0.5) ? made_[made_.size() - 1 - below(recent)] : made_[below(made_.size())];
  }

  Kernel start(std::uint32_t position) {
    Kernel kernel;
    kernel.name = "kernel" + std::to_string(position);
    kernel.operation = "random";
    kernel.layer = position / 3;
    kernel.phase = position < options_.kernels / 2 ? Phase::forward : Phase::backward;
    kernel.flops = static_cast<double>(below(1000));
    if (chance(options_.workspace_share)) {
      kernel.workspace = tensor("workspace", size(), TensorKind::workspace);
    }
    return kernel;
  }

  Kernel update(std::uint32_t position) {
    Kernel kernel = start(position);
    kernel.phase = Phase::update;
    const TensorId weight = kept_[below(kept_.size())];
    kernel.inputs = {whole(weight), whole(any_made())};
    kernel.outputs = {whole(weight)};
    return kernel;
  }

  Kernel compute(std::uint32_t position) {
    Kernel kernel = start(position);
    const std::size_t inputs = 1 + below(options_.max_fan_in);
    for (std::size_t i = 0; i < inputs; ++i) {
      const bool kept = chance(options_.persistent_share);
      kernel.inputs.push_back(whole(kept ? kept_[below(kept_.size())] : any_made()));
    }
    const bool in_place = chance(options_.in_place_share);
    if (in_place) kernel.in_place = {{0, 0}};
    const std::size_t outputs = 1 + below(options_.max_fan_out);
    for (std::size_t i = 0; i < outputs; ++i) {
      const Bytes bytes = in_place && i == 0 ? graph_[kernel.inputs[0].tensor].bytes : size();
      const auto kind = kernel.phase == Phase::forward ? TensorKind::activation : TensorKind::gradient;
      kernel.outputs.push_back(whole(tensor("tensor", bytes, kind)));
      made_.push_back(kernel.outputs.back().tensor);
      if (chance(options_.result_share)) graph_.results.push_back(made_.back());
    }
    if (chance(options_.rewrite_share)) rewrite(kernel);
    return kernel;
  }

  void rewrite(Kernel& kernel) {
    // The kernel's own outputs are the newest tensors and are excluded.
    const std::size_t older = made_.size() - kernel.outputs.size();
    const TensorId id = made_[older - 1 - below(std::min<std::size_t>(older, 4))];
    if (graph_[id].kind != TensorKind::input) kernel.outputs.push_back(whole(id));
  }

  RandomGraphOptions options_;
  std::mt19937_64 random_;
  Graph graph_;
  std::vector<TensorId> made_, kept_;  ///< tensors that may be read: inputs and outputs; persistent ones
};

inline Graph random_graph(const RandomGraphOptions& options, std::uint64_t seed) {
  return RandomGraph(options, seed).run();
}

}  // namespace terrace

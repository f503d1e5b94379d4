// SPDX-License-Identifier: Apache-2.0
// Values: which value of every tensor each kernel reads and writes in the graph's own order.
//
// A tensor's values are numbered by its writes: 0 is what it holds before the step, n what the n-th write
// leaves. Two regions of one tensor with the same number hold the same bits, whatever order the kernels ran
// in and however often, for each of those runs read exactly the values it reads in the graph's order.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

using ValueNumber = std::uint32_t;
inline constexpr ValueNumber kUndefined = std::numeric_limits<ValueNumber>::max();

class Values {
 public:
  explicit Values(const Graph& graph) : graph_(graph), last_(graph.tensors.size()) {
    first_.reserve(graph.kernels.size());
    for (const Kernel& kernel : graph.kernels) {
      first_.push_back(numbers_.size());
      for (const Operand& input : kernel.inputs) numbers_.push_back(last_[input.tensor.index]);
      for (const Operand& output : kernel.outputs) numbers_.push_back(++last_[output.tensor.index]);
    }
  }

  /// Returns the values of the kernel's inputs, in their order.
  std::span<const ValueNumber> read_by(KernelId kernel) const {
    return {numbers_.data() + first_[kernel.index], graph_[kernel].inputs.size()};
  }
  std::span<const ValueNumber> written_by(KernelId kernel) const {
    const Kernel& it = graph_[kernel];
    return {numbers_.data() + first_[kernel.index] + it.inputs.size(), it.outputs.size()};
  }
  /// Returns what the tensor holds after the step.
  ValueNumber last(TensorId tensor) const { return last_[tensor.index]; }

 private:
  const Graph& graph_;
  std::vector<std::size_t> first_;  ///< of each kernel in numbers_
  std::vector<ValueNumber> numbers_, last_;
};

}  // namespace terrace

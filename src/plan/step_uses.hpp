// SPDX-License-Identifier: Apache-2.0
// Who needs what when: the operands of every kernel, each tensor once, with its next use.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "terrace/graph.hpp"

namespace terrace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

/// Filled anew before every step.
inline bool is_given(const Tensor& tensor) { return tensor.kind == TensorKind::input && !tensor.persistent; }

struct Use {
  TensorId tensor;
  bool reads = false, writes = false;
  std::uint32_t next = kNever;  ///< the next kernel that uses the tensor
  bool next_reads = false;      ///< else what the tensor holds until then is of no use
};

/// Whether the tensor is not used for some time after this use, as 003 section III-E hints: what a forward
/// kernel only read.
inline bool rests_after(const Kernel& kernel, const Use& use) {
  return kernel.phase == Phase::forward && !use.writes;
}

/// After the last kernel stands one more, which reads the results: they are to be at hand at the step's end.
class StepUses {
 public:
  explicit StepUses(const Graph& graph);

  std::uint32_t kernels() const { return static_cast<std::uint32_t>(begin_.size() - 2); }
  /// Of kernel 0..kernels(); the last stands for the end of the step.
  std::span<const Use> of(std::uint32_t kernel) const {
    return {uses_.data() + begin_[kernel], uses_.data() + begin_[kernel + 1]};
  }
  std::uint32_t first(TensorId tensor) const { return first_[tensor.index]; }
  /// Returns whether what it holds at the step's start is ever read.
  bool first_reads(TensorId tensor) const { return first_reads_[tensor.index]; }

 private:
  void link(std::size_t tensors);

  std::vector<Use> uses_;
  std::vector<std::size_t> begin_;
  std::vector<std::uint32_t> first_;
  std::vector<bool> first_reads_;
};

}  // namespace terrace

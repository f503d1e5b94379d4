// SPDX-License-Identifier: Apache-2.0
// What has to run again, in the graph's order, to have a value that is gone: the kernels that wrote it, those
// that wrote what these read and is gone or was overwritten since, and so on. A kernel makes all of its
// outputs, so what else it writes is made anew with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graph/tokens.hpp"
#include "plan/step_uses.hpp"
#include "terrace/machine.hpp"

namespace terrace::best {

/// Which tensors and kernels are in a set that is emptied often.
class Marks {
 public:
  explicit Marks(std::size_t size) : mark_(size) {}
  void clear() { ++now_; }
  bool has(std::uint32_t index) const { return mark_[index] == now_; }
  /// Returns whether it was not in the set.
  bool add(std::uint32_t index) {
    if (has(index)) return false;
    mark_[index] = now_;
    return true;
  }

 private:
  std::vector<std::uint32_t> mark_;
  std::uint32_t now_ = 1;
};

class RecomputeClosure {
 public:
  /// Borrows the graph and its uses.
  RecomputeClosure(const Graph& graph, const StepUses& uses, const Machine& machine);

  /// Finds what makes the tensor's value again before a kernel. `at_hand(tensor)`: its newest value need not
  /// be made. `may_run(kernel)` is asked once for each. Returns whether it is possible.
  template <class AtHand, class MayRun>
  bool collect(TensorId tensor, std::uint32_t before, const AtHand& at_hand, const MayRun& may_run) {
    kernels_.clear();
    tensors_.clear();
    in_kernels_.clear();
    in_tensors_.clear();
    failed_kernel_ = kNever;
    failed_tensor_ = {};
    if (!collect_tensor(tensor, before, may_run)) return false;
    for (std::size_t next = 0; next < kernels_.size();) {
      const std::uint32_t kernel = failed_kernel_ = kernels_[next++];  // more come meanwhile
      if (!collect_outputs(kernel, before, may_run) || !collect_inputs(kernel, before, at_hand, may_run))
        return false;
    }
    std::sort(kernels_.begin(), kernels_.end());
    return true;
  }

  /// Of the latest success: what runs, ascending, and what that makes anew.
  const std::vector<std::uint32_t>& kernels() const { return kernels_; }
  const std::vector<TensorId>& tensors() const { return tensors_; }
  /// Of the latest failure, where one is to blame.
  std::uint32_t failed_kernel() const { return failed_kernel_; }
  TensorId failed_tensor() const { return failed_tensor_; }

  const std::vector<std::uint32_t>& writers(TensorId tensor) const { return writers_[tensor.index]; }
  /// Whether it is neither there from step to step, nor given, nor a result.
  bool can_go(TensorId tensor) const;

 private:
  /// Whether the tensor is written between two kernels.
  bool is_changed(TensorId tensor, std::uint32_t after, std::uint32_t before) const;
  /// Whether nobody uses it between two runs of the kernel, and both read it.
  bool is_read_twice(std::uint32_t kernel, TensorId tensor, std::uint32_t before) const;

  /// Adds the kernels that wrote all values of the tensor so far.
  template <class MayRun>
  bool collect_tensor(TensorId tensor, std::uint32_t before, const MayRun& may_run) {
    if (!in_tensors_.add(tensor.index)) return true;
    if (!can_go(tensor)) return false;
    tensors_.push_back(tensor);
    for (const std::uint32_t writer : writers_[tensor.index]) {
      if (writer >= before) break;
      if (!in_kernels_.add(writer)) continue;
      if (has_token(graph_, graph_.kernels[writer]) || !may_run(writer)) return false;
      kernels_.push_back(writer);
    }
    return true;
  }

  template <class MayRun>
  bool collect_outputs(std::uint32_t k, std::uint32_t before, const MayRun& may_run) {
    const Kernel& kernel = graph_.kernels[k];
    return std::all_of(kernel.outputs.begin(), kernel.outputs.end(), [&](const Operand& output) {
      return graph_[output.tensor].persistent ? is_read_twice(k, output.tensor, before)
                                              : collect_tensor(output.tensor, before, may_run);
    });
  }

  template <class AtHand, class MayRun>
  bool collect_inputs(std::uint32_t k, std::uint32_t before, const AtHand& at_hand, const MayRun& may_run) {
    const Kernel& kernel = graph_.kernels[k];
    return std::all_of(kernel.inputs.begin(), kernel.inputs.end(), [&](const Operand& input) {
      const bool changed = is_changed(input.tensor, k, before);
      if (graph_[input.tensor].persistent) return !changed;
      if (!changed && at_hand(input.tensor)) return true;
      if (collect_tensor(input.tensor, before, may_run)) return true;
      failed_tensor_ = input.tensor;
      return false;
    });
  }

  const Graph& graph_;
  const StepUses& uses_;
  bool keeps_snapshots_;                             ///< a slower tier can hold what a second run reads
  std::vector<std::vector<std::uint32_t>> writers_;  ///< by tensor
  std::vector<bool> is_result_;
  std::vector<std::uint32_t> kernels_;
  std::vector<TensorId> tensors_;
  Marks in_kernels_, in_tensors_;
  std::uint32_t failed_kernel_ = kNever;
  TensorId failed_tensor_;
};

}  // namespace terrace::best

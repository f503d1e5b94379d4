// SPDX-License-Identifier: Apache-2.0
#include "planners/best/recompute_rewrite.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "migration/fit.hpp"
#include "planners/best/recompute_closure.hpp"

namespace terrace::best {

/// Goes through the kernels in order and puts second runs before those that need them.
class RecomputeRewrite::Rewriting {
 public:
  Rewriting(RecomputeRewrite& to, const StepUses& uses)
      : to_(to),
        graph_(to.asked_.graph),
        closure_(graph_, uses, to.asked_.machine),
        recomputed_(graph_.tensors.size()),
        last_run_(graph_.kernels.size()),
        ran_again_(graph_.kernels.size()) {
    to_.graph_ = graph_;
    to_.graph_.kernels.clear();
    to_.profile_.graph = to_.asked_.profile.graph;
    to_.profile_.machine = to_.asked_.profile.machine;
    for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
      stands_for_.push_back({i});
      to_.tensor_of_.push_back({i});
    }
  }

  /// By tensor: what is discarded, and what of that cannot be recomputed is kept.
  void run(std::vector<DiscardWindow> discarded) {
    discarded_ = std::move(discarded);
    for (std::uint32_t k = 0; k < graph_.kernels.size(); ++k) {
      for (const Operand& input : graph_.kernels[k].inputs) {
        if (discarded_[input.tensor.index].until == k) recompute(input.tensor, k);
      }
      run_first_time(k);
    }
    to_.snapshots_ = StateSnapshots(std::move(state_reads_));
  }

  void run(const std::vector<RecomputeBatch>& batches) {
    auto next = batches.begin();
    for (std::uint32_t k = 0; k < graph_.kernels.size(); ++k) {
      for (; next != batches.end() && next->before == k; ++next) run_batch(next->kernels, next->tensors);
      run_first_time(k);
    }
    to_.snapshots_ = StateSnapshots(std::move(state_reads_));
  }

 private:
  bool is_discarded(TensorId tensor, std::uint32_t before) const {
    const DiscardWindow& discarded = discarded_[tensor.index];
    return discarded.after != kNever && discarded.after < before && !recomputed_[tensor.index];
  }

  void recompute(TensorId tensor, std::uint32_t before) {
    const auto at_hand = [&](TensorId one) { return !is_discarded(one, before); };
    const auto may_run = [&](std::uint32_t kernel) { return !ran_again_[kernel]; };
    while (is_discarded(tensor, before) && !closure_.collect(tensor, before, at_hand, may_run)) {
      if (!keep_what_failed()) discarded_[tensor.index] = {};
    }
    if (!is_discarded(tensor, before)) return;
    for (const TensorId made : closure_.tensors()) recomputed_[made.index] = true;
    run_batch(closure_.kernels(), closure_.tensors());
  }

  void run_batch(const std::vector<std::uint32_t>& kernels, const std::vector<TensorId>& tensors) {
    for (const TensorId made : tensors) stands_for_[made.index] = add_tensor(graph_[made], made);
    for (const std::uint32_t k : kernels) run_again(k);
  }

  /// Keeps what cannot be recomputed, so that other things can. Returns whether less is discarded now.
  bool keep_what_failed() {
    const auto keep = [&](TensorId tensor) {
      return std::exchange(discarded_[tensor.index], DiscardWindow{}) != DiscardWindow{};
    };
    if (closure_.failed_tensor() && keep(closure_.failed_tensor())) return true;
    bool any = false;
    if (closure_.failed_kernel() != kNever) {
      for (const Operand& output : graph_.kernels[closure_.failed_kernel()].outputs)
        any = keep(output.tensor) || any;
    }
    return any;
  }

  /// One past the last run before the kernel's first one that writes the tensor.
  std::uint32_t written_before(TensorId tensor, std::uint32_t k) const {
    const auto& writers = closure_.writers(tensor);
    const auto own = std::lower_bound(writers.begin(), writers.end(), k);
    return own == writers.begin() ? 0 : last_run_[*std::prev(own)] + 1;
  }

  void run_first_time(std::uint32_t k) {
    last_run_[k] = next_run();
    add_run(k, graph_.kernels[k].workspace);
  }

  void run_again(std::uint32_t k) {
    const Kernel& kernel = graph_.kernels[k];
    const bool is_saved = ran_again_[k];
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
      const TensorId output = kernel.outputs[i].tensor;
      if (!graph_[output].persistent) continue;
      Tensor nowhere = graph_[output];
      nowhere.persistent = false;
      to_.graph_.kernels[last_run_[k]].outputs[i].tensor = add_tensor(std::move(nowhere), {});
      state_reads_.push_back({output, last_run_[k], next_run(), written_before(output, k), is_saved});
    }
    ran_again_[k] = true;
    last_run_[k] = next_run();
    add_run(k, kernel.workspace ? add_tensor(graph_[kernel.workspace], kernel.workspace) : TensorId{});
  }

  std::uint32_t next_run() const { return static_cast<std::uint32_t>(to_.graph_.kernels.size()); }

  TensorId add_tensor(Tensor tensor, TensorId of) {
    to_.graph_.tensors.push_back(std::move(tensor));
    to_.tensor_of_.push_back(of);
    return {static_cast<std::uint32_t>(to_.graph_.tensors.size() - 1)};
  }

  void add_run(std::uint32_t k, TensorId workspace) {
    Kernel kernel = graph_.kernels[k];
    for (auto* operands : {&kernel.inputs, &kernel.outputs}) {
      for (Operand& operand : *operands) operand.tensor = stands_for_[operand.tensor.index];
    }
    kernel.workspace = workspace;
    to_.graph_.kernels.push_back(std::move(kernel));
    to_.profile_.kernels.push_back(to_.asked_.profile.kernels[k]);
    to_.kernel_of_.push_back({k});
  }

  RecomputeRewrite& to_;
  const Graph& graph_;
  RecomputeClosure closure_;
  std::vector<DiscardWindow> discarded_;
  std::vector<bool> recomputed_;         ///< by tensor
  std::vector<TensorId> stands_for_;     ///< by tensor: the one that kernels take from here on
  std::vector<std::uint32_t> last_run_;  ///< by kernel
  std::vector<bool> ran_again_;          ///< by kernel
  std::vector<StateRead> state_reads_;
};

RecomputeRewrite::RecomputeRewrite(const PlanRequest& request, const StepUses& uses,
                                   std::vector<DiscardWindow> discarded)
    : asked_(request) {
  Rewriting(*this, uses).run(std::move(discarded));
}

RecomputeRewrite::RecomputeRewrite(const PlanRequest& request, const StepUses& uses,
                                   const std::vector<RecomputeBatch>& batches)
    : asked_(request) {
  Rewriting(*this, uses).run(batches);
}

void RecomputeRewrite::restore(Run& run) const {
  const Kernel& kernel = graph_[run.kernel];
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
    if (!is_nowhere(kernel.outputs[i].tensor)) continue;
    // The kernel writes the tensor where it read it.
    const TensorId tensor = asked_.graph[kernel_of_[run.kernel.index]].outputs[i].tensor;
    const auto read = std::find_if(kernel.inputs.begin(), kernel.inputs.end(), [&](const Operand& input) {
      return tensor_of_[input.tensor.index] == tensor;
    });
    run.tiers[kernel.inputs.size() + i] = run.tiers[static_cast<std::size_t>(read - kernel.inputs.begin())];
  }
  run.kernel = kernel_of_[run.kernel.index];
}

/// Returns whether the instruction means anything in the graph asked for.
bool RecomputeRewrite::restore(Instruction& instruction) const {
  const auto rename = [&](TensorId& tensor) {
    tensor = tensor_of_[tensor.index];
    return static_cast<bool>(tensor);
  };
  if (auto* alloc = std::get_if<Alloc>(&instruction)) return rename(alloc->tensor);
  if (auto* free = std::get_if<Free>(&instruction)) return rename(free->tensor);
  if (auto* copy = std::get_if<Copy>(&instruction)) {
    for (TensorId& tensor : copy->tensors) rename(tensor);
  }
  if (auto* run = std::get_if<Run>(&instruction)) restore(*run);
  return true;
}

Result<Plan> RecomputeRewrite::restore(Draft draft) const {
  if (auto added = snapshots_.add_to(draft, asked_); !added) return added.error();
  std::vector<Instruction> instructions;
  instructions.reserve(draft.plan.instructions.size());
  for (Instruction& instruction : draft.plan.instructions) {
    if (restore(instruction)) instructions.push_back(std::move(instruction));
  }
  draft.plan.instructions = std::move(instructions);
  draft.plan.graph = fingerprint(asked_.graph);
  draft.plan.profile = fingerprint(asked_.profile);
  return fitted(asked_, std::move(draft));
}

}  // namespace terrace::best

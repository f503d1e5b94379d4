#include "planners/best/recompute_rewrite.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "graph/tokens.hpp"
#include "migration/fit.hpp"

namespace terrace::best {
namespace {

/// Which tensors and kernels are in a set that is emptied often.
class Marks {
 public:
  explicit Marks(std::size_t size) : mark_(size) {}
  void clear() { ++now_; }
  bool has(std::uint32_t index) const { return mark_[index] == now_; }
  /// Whether it is new.
  bool add(std::uint32_t index) {
    if (has(index)) return false;
    mark_[index] = now_;
    return true;
  }

 private:
  std::vector<std::uint32_t> mark_;
  std::uint32_t now_ = 1;
};

bool has_operand(const std::vector<Operand>& operands, TensorId tensor) {
  return std::any_of(operands.begin(), operands.end(),
                     [&](const Operand& operand) { return operand.tensor == tensor; });
}

}  // namespace

/// Goes through the kernels in order and puts second runs before those that need them.
class RecomputeRewrite::Rewriting {
 public:
  Rewriting(RecomputeRewrite& to, const StepUses& uses, std::vector<DiscardWindow> discarded)
      : to_(to),
        graph_(to.asked_.graph),
        uses_(uses),
        discarded_(std::move(discarded)),
        writers_(graph_.tensors.size()),
        is_result_(graph_.tensors.size()),
        recomputed_(graph_.tensors.size()),
        first_run_(graph_.kernels.size()),
        runs_twice_(graph_.kernels.size()),
        in_kernels_(graph_.kernels.size()),
        in_tensors_(graph_.tensors.size()) {
    for (const TensorId result : graph_.results) is_result_[result.index] = true;
    for (std::uint32_t k = 0; k < graph_.kernels.size(); ++k) {
      for (const Operand& output : graph_.kernels[k].outputs) writers_[output.tensor.index].push_back(k);
    }
    to_.graph_ = graph_;
    to_.graph_.kernels.clear();
    to_.profile_.graph = to_.asked_.profile.graph;
    to_.profile_.machine = to_.asked_.profile.machine;
    for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
      stands_for_.push_back({i});
      to_.tensor_of_.push_back({i});
    }
  }

  void run() {
    for (std::uint32_t k = 0; k < graph_.kernels.size(); ++k) {
      for (const Operand& input : graph_.kernels[k].inputs) {
        if (discarded_[input.tensor.index].until == k) recompute(input.tensor, k);
      }
      first_run_[k] = next_run();
      add_run(k, graph_.kernels[k].workspace);
    }
    to_.snapshots_ = StateSnapshots(std::move(state_reads_));
  }

 private:
  bool is_discarded(TensorId tensor, std::uint32_t before) const {
    const DiscardWindow& discarded = discarded_[tensor.index];
    return discarded.after != kNever && discarded.after < before && !recomputed_[tensor.index];
  }

  /// Whether the tensor is written between two kernels.
  bool is_changed(TensorId tensor, std::uint32_t after, std::uint32_t before) const {
    const auto& writers = writers_[tensor.index];
    const auto next = std::upper_bound(writers.begin(), writers.end(), after);
    return next != writers.end() && *next < before;
  }

  void recompute(TensorId tensor, std::uint32_t before) {
    while (is_discarded(tensor, before) && !collect(tensor, before)) {
      if (!keep_what_failed()) discarded_[tensor.index] = {};
    }
    if (!is_discarded(tensor, before)) return;
    for (const TensorId made : tensors_) {
      recomputed_[made.index] = true;
      stands_for_[made.index] = add_tensor(graph_[made], made);
    }
    for (const std::uint32_t k : kernels_) run_second_time(k);
  }

  /// What has to be made, and what has to run for it in order. Returns whether that is possible.
  bool collect(TensorId tensor, std::uint32_t before) {
    kernels_.clear();
    tensors_.clear();
    in_kernels_.clear();
    in_tensors_.clear();
    failed_kernel_ = kNever;
    failed_tensor_ = {};
    if (!collect_tensor(tensor, before)) return false;
    for (std::size_t next = 0; next < kernels_.size();) {
      const std::uint32_t kernel = failed_kernel_ = kernels_[next++];  // more come meanwhile
      if (!collect_outputs(kernel, before) || !collect_inputs(kernel, before)) return false;
    }
    std::sort(kernels_.begin(), kernels_.end());
    return true;
  }

  /// All its values so far, one after the other.
  bool collect_tensor(TensorId tensor, std::uint32_t before) {
    const Tensor& what = graph_[tensor];
    if (!in_tensors_.add(tensor.index)) return true;
    if (what.persistent || is_given(what) || is_result_[tensor.index] || recomputed_[tensor.index])
      return false;
    tensors_.push_back(tensor);
    for (const std::uint32_t writer : writers_[tensor.index]) {
      if (writer >= before) break;
      if (runs_twice_[writer] || has_token(graph_, graph_.kernels[writer])) return false;
      if (in_kernels_.add(writer)) kernels_.push_back(writer);
    }
    return true;
  }

  bool collect_outputs(std::uint32_t k, std::uint32_t before) {
    const Kernel& kernel = graph_.kernels[k];
    return std::all_of(kernel.outputs.begin(), kernel.outputs.end(), [&](const Operand& output) {
      return graph_[output.tensor].persistent ? is_read_twice(k, output.tensor, before)
                                              : collect_tensor(output.tensor, before);
    });
  }

  /// Whether nobody uses it between the two runs, and both read it.
  bool is_read_twice(std::uint32_t k, TensorId tensor, std::uint32_t before) const {
    if (is_result_[tensor.index] || !has_operand(graph_.kernels[k].inputs, tensor)) return false;
    if (!StateSnapshots::possible(to_.asked_.machine)) return false;
    const auto uses = uses_.of(k);
    const auto use =
        std::find_if(uses.begin(), uses.end(), [&](const Use& one) { return one.tensor == tensor; });
    return use->next == kNever || use->next >= before;
  }

  bool collect_inputs(std::uint32_t k, std::uint32_t before) {
    const Kernel& kernel = graph_.kernels[k];
    return std::all_of(kernel.inputs.begin(), kernel.inputs.end(), [&](const Operand& input) {
      const bool changed = is_changed(input.tensor, k, before);
      if (graph_[input.tensor].persistent) return !changed;
      if (!changed && !is_discarded(input.tensor, before)) return true;
      if (collect_tensor(input.tensor, before)) return true;
      failed_tensor_ = input.tensor;
      return false;
    });
  }

  /// So that other things can be made again. Returns whether less is discarded now.
  bool keep_what_failed() {
    const auto keep = [&](TensorId tensor) {
      return std::exchange(discarded_[tensor.index], DiscardWindow{}) != DiscardWindow{};
    };
    if (failed_tensor_ && keep(failed_tensor_)) return true;
    bool any = false;
    if (failed_kernel_ != kNever) {
      for (const Operand& output : graph_.kernels[failed_kernel_].outputs) any = keep(output.tensor) || any;
    }
    return any;
  }

  /// One past the last run before the kernel's first one that writes the tensor.
  std::uint32_t written_before(TensorId tensor, std::uint32_t k) const {
    const auto& writers = writers_[tensor.index];
    const auto own = std::lower_bound(writers.begin(), writers.end(), k);
    return own == writers.begin() ? 0 : first_run_[*std::prev(own)] + 1;
  }

  void run_second_time(std::uint32_t k) {
    runs_twice_[k] = true;
    const Kernel& kernel = graph_.kernels[k];
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
      const TensorId output = kernel.outputs[i].tensor;
      if (!graph_[output].persistent) continue;
      Tensor nowhere = graph_[output];
      nowhere.persistent = false;
      to_.graph_.kernels[first_run_[k]].outputs[i].tensor = add_tensor(std::move(nowhere), {});
      state_reads_.push_back({output, first_run_[k], next_run(), written_before(output, k)});
    }
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
  const StepUses& uses_;
  std::vector<DiscardWindow> discarded_;
  std::vector<std::vector<std::uint32_t>> writers_;  ///< by tensor
  std::vector<bool> is_result_, recomputed_;         ///< by tensor
  std::vector<TensorId> stands_for_;                 ///< by tensor: the one that kernels take from here on
  std::vector<std::uint32_t> first_run_;             ///< by kernel
  std::vector<bool> runs_twice_;                     ///< by kernel
  std::vector<StateRead> state_reads_;
  // What is being made again.
  std::vector<std::uint32_t> kernels_;
  std::vector<TensorId> tensors_;
  Marks in_kernels_, in_tensors_;
  std::uint32_t failed_kernel_ = kNever;
  TensorId failed_tensor_;
};

RecomputeRewrite::RecomputeRewrite(const PlanRequest& request, const StepUses& uses,
                                   std::vector<DiscardWindow> discarded)
    : asked_(request) {
  Rewriting(*this, uses, std::move(discarded)).run();
}

void RecomputeRewrite::restore(Run& run) const {
  const Kernel& kernel = graph_[run.kernel];
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
    if (!is_nowhere(kernel.outputs[i].tensor)) continue;
    // It is written where it was read.
    const TensorId tensor = asked_.graph[kernel_of_[run.kernel.index]].outputs[i].tensor;
    const auto read = std::find_if(kernel.inputs.begin(), kernel.inputs.end(), [&](const Operand& input) {
      return tensor_of_[input.tensor.index] == tensor;
    });
    run.tiers[kernel.inputs.size() + i] = run.tiers[static_cast<std::size_t>(read - kernel.inputs.begin())];
  }
  run.kernel = kernel_of_[run.kernel.index];
}

/// Returns whether it means anything.
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

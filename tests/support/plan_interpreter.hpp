// SPDX-License-Identifier: Apache-2.0
// Executes plans on real bytes: the simple oracle for everything that decides whether a plan is correct.
//
// Kernels are hash functions of their input bytes, so that a wrong byte anywhere reaches everything computed
// from it. Undefined memory (fresh, freed, a workspace, a transfer's destination before its wait) is poisoned
// with bytes that never repeat. What a ticket stands for, a transfer or a run, happens all at once when it is
// issued or all at once when its end must be known, after what it comes after: these are the two extremes of
// what lanes may do. The interpreter knows no rules: it does what the instructions say, and a plan that
// cannot be executed at all ends in a fault.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "graph/variant.hpp"
#include "terrace/plan.hpp"

namespace terrace {

enum class CopyTiming { at_copy, at_wait };

using TensorBytes = std::vector<std::byte>;
/// The outcome of steps: the bytes of persistent tensors and of each step's results.
using StepBytes = std::map<std::pair<std::uint32_t, std::uint32_t>, TensorBytes>;

class PlanFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace interpreter {

inline std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
  return SplitMix(state ^ (word * 31)).next();
}

inline std::uint64_t digest(std::uint64_t state, const std::byte* bytes, std::size_t size) {
  state = mix(state, size);
  for (; size >= 8; bytes += 8, size -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    state = mix(state, word);
  }
  std::uint64_t rest = 0;
  if (size > 0) std::memcpy(&rest, bytes, size);
  return mix(state, rest);
}

inline void fill(std::byte* bytes, std::size_t size, std::uint64_t seed) {
  SplitMix random(seed);
  for (std::size_t done = 0; done < size; done += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(bytes + done, &word, std::min<std::size_t>(8, size - done));
  }
}

/// Returns the initial contents of a persistent tensor, or those of an input before step `step`.
inline std::uint64_t given(std::uint32_t tensor, std::uint32_t step) { return mix(mix(7, tensor), step); }

/// Returns the seed of one output, from the digest of all inputs.
inline std::uint64_t output_seed(std::uint32_t kernel, std::size_t output, std::uint64_t inputs) {
  return mix(mix(mix(11, kernel), output), inputs);
}

}  // namespace interpreter

/// Runs the graph in its own order with separate memory for every tensor. Every plan must reproduce this.
inline StepBytes plain_steps(const Graph& graph, std::uint32_t steps) {
  using namespace interpreter;
  std::vector<TensorBytes> memory;
  for (const Tensor& tensor : graph.tensors) memory.emplace_back(tensor.bytes.count);
  StepBytes left;
  for (std::uint32_t step = 0; step < steps; ++step) {
    for (std::uint32_t i = 0; i < memory.size(); ++i) {
      const Tensor& tensor = graph.tensors[i];
      const bool is_given = tensor.persistent ? step == 0 : tensor.kind == TensorKind::input;
      if (is_given) fill(memory[i].data(), memory[i].size(), given(i, step));
    }
    for (std::uint32_t k = 0; k < graph.kernels.size(); ++k) {
      const Kernel& kernel = graph.kernels[k];
      std::uint64_t inputs = 0;
      for (const Operand& input : kernel.inputs) {
        const TensorBytes& bytes = memory[input.tensor.index];
        inputs = digest(inputs, bytes.data(), bytes.size());
      }
      for (std::size_t o = 0; o < kernel.outputs.size(); ++o) {
        TensorBytes& bytes = memory[kernel.outputs[o].tensor.index];
        fill(bytes.data(), bytes.size(), output_seed(k, o, inputs));
      }
    }
    for (const TensorId result : graph.results) left[{step, result.index}] = memory[result.index];
  }
  for (std::uint32_t i = 0; i < memory.size(); ++i) {
    if (graph.tensors[i].persistent) left[{steps, i}] = memory[i];
  }
  return left;
}

class PlanInterpreter {
 public:
  PlanInterpreter(const Graph& graph, const Machine& machine, const Plan& plan, CopyTiming timing)
      : graph_(graph), machine_(machine), plan_(plan), timing_(timing), regions_(graph.tensors.size()) {
    for (std::size_t i = 0; i < machine.tiers.size(); ++i) {
      memory_.emplace_back(i < plan.budget.size() ? plan.budget[i].count : 0);
      poison(memory_.back().data(), memory_.back().size());
    }
    for (auto& tiers : regions_) tiers.resize(machine.tiers.size());
  }

  /// Throws PlanFault where an instruction cannot be executed, or copies of one tensor disagree at the end.
  StepBytes run(std::uint32_t steps) {
    StepBytes left;
    for (const Alloc& region : plan_.start) (*this)(region);
    for (std::uint32_t step = 0; step < steps; ++step) {
      begin(step);
      for (const Instruction& instruction : plan_.instructions) std::visit(*this, instruction);
      for (const TensorId result : graph_.results) left[{step, result.index}] = everywhere(result, true);
      end();
    }
    for (std::uint32_t i = 0; i < graph_.tensors.size(); ++i) {
      if (graph_.tensors[i].persistent) left[{steps, i}] = everywhere({i}, false);
    }
    return left;
  }

  void operator()(const Alloc& alloc) {
    auto& region = at(alloc.tensor, alloc.tier);
    need(!region, "two regions of one tensor in one tier");
    const Bytes bytes = round_up(graph_[alloc.tensor].bytes, machine_[alloc.tier].granularity);
    const std::size_t size = memory_[alloc.tier.index].size();
    need(alloc.offset <= size && bytes.count <= size - alloc.offset, "a region beyond the tier");
    region = alloc.offset;
    poison(data(alloc.tensor, alloc.tier), bytes.count);
  }
  void operator()(const Free& free) {
    std::byte* bytes = data(free.tensor, free.tier);
    poison(bytes, round_up(graph_[free.tensor].bytes, machine_[free.tier].granularity).count);
    at(free.tensor, free.tier).reset();
  }
  void operator()(const Copy& copy) {
    const std::size_t thing = add(copy, {1, copy.from.index, copy.to.index}, copy.after, copy.ticket);
    if (timing_ == CopyTiming::at_copy) return finish(thing);
    for (const TensorId tensor : copy.tensors) data(tensor, copy.from);
    for (const TensorId tensor : copy.tensors) {
      std::byte* to = data(tensor, copy.to);
      if (!is_used_before(thing, tensor, copy.to)) poison(to, graph_[tensor].bytes.count);
    }
  }
  void operator()(const Wait& wait) {
    need(tickets_.count(wait.ticket) > 0, "a ticket nobody has");
    need(waited_.insert(wait.ticket).second, "a ticket waited for twice");
    finish(tickets_[wait.ticket]);
  }
  void operator()(const Run& run) {
    need(run.engine.index < machine_.engine_count(), "an engine that is not there");
    const std::size_t thing = add(run, {0, run.engine.index, 0}, run.after, run.ticket);
    if (!run.ticket || timing_ == CopyTiming::at_copy) finish(thing);
  }

 private:
  /// A transfer or a run, which happens when it must.
  struct Thing {
    Instruction instruction;
    std::array<std::uint32_t, 3> lane;
    std::vector<std::size_t> after;
    bool done = false;
  };

  std::size_t add(const Instruction& instruction, const std::array<std::uint32_t, 3>& lane,
                  const std::vector<std::uint32_t>& after, std::optional<std::uint32_t> ticket) {
    Thing thing{instruction, lane, {}};
    for (const std::uint32_t one : after) {
      need(tickets_.count(one) > 0, "a ticket nobody has");
      thing.after.push_back(tickets_[one]);
    }
    const auto [last, is_first] = last_on_.emplace(lane, things_.size());
    if (!is_first) thing.after.push_back(std::exchange(last->second, things_.size()));
    if (ticket) need(tickets_.emplace(*ticket, things_.size()).second, "a ticket in use");
    things_.push_back(std::move(thing));
    return things_.size() - 1;
  }
  /// Whether something that was issued before and has not happened uses the region.
  bool is_used_before(std::size_t thing, TensorId tensor, TierId tier) const {
    return std::any_of(things_.begin(), things_.begin() + static_cast<std::ptrdiff_t>(thing),
                       [&](const Thing& one) { return !one.done && uses(one.instruction, tensor, tier); });
  }
  bool uses(const Instruction& instruction, TensorId tensor, TierId tier) const {
    if (const auto* copy = std::get_if<Copy>(&instruction)) {
      return (copy->from == tier || copy->to == tier) &&
             std::count(copy->tensors.begin(), copy->tensors.end(), tensor) > 0;
    }
    const Run& run = std::get<Run>(instruction);
    const Kernel& kernel = graph_[run.kernel];
    for (std::size_t i = 0; i < run.tiers.size(); ++i) {
      const std::size_t inputs = kernel.inputs.size(), operands = inputs + kernel.outputs.size();
      const TensorId operand = i < inputs     ? kernel.inputs[i].tensor
                               : i < operands ? kernel.outputs[i - inputs].tensor
                                              : kernel.workspace;
      if (operand == tensor && run.tiers[i] == tier) return true;
    }
    return false;
  }
  void finish(std::size_t thing) {
    if (things_[thing].done) return;
    for (const std::size_t before : things_[thing].after) finish(before);
    things_[thing].done = true;
    if (const auto* copy = std::get_if<Copy>(&things_[thing].instruction)) return carry(*copy);
    compute(std::get<Run>(things_[thing].instruction));
  }

  void carry(const Copy& copy) {
    for (const TensorId tensor : copy.tensors) {
      std::byte* to = data(tensor, copy.to);
      std::copy_n(data(tensor, copy.from), graph_[tensor].bytes.count, to);
    }
  }
  void compute(const Run& run) {
    using namespace interpreter;
    need(run.kernel.index < graph_.kernels.size(), "a kernel that is not there");
    const Kernel& kernel = graph_[run.kernel];
    need(run.variant < variant_count(kernel), "a variant that is not there");
    const std::size_t inputs = kernel.inputs.size(), operands = inputs + kernel.outputs.size();
    need(run.tiers.size() == operands + (kernel.workspace ? 1 : 0), "other operands than the kernel's");
    use_workspace(kernel, run);
    std::uint64_t read = 0;
    for (std::size_t i = 0; i < inputs; ++i) {
      const TensorId tensor = kernel.inputs[i].tensor;
      read = digest(read, in_place(tensor, run.tiers[i], run.engine), graph_[tensor].bytes.count);
    }
    for (std::size_t o = 0; o < kernel.outputs.size(); ++o) {
      const TensorId tensor = kernel.outputs[o].tensor;
      fill(in_place(tensor, run.tiers[inputs + o], run.engine), graph_[tensor].bytes.count,
           output_seed(run.kernel.index, o, read));
    }
    use_workspace(kernel, run);
  }

  static void need(bool holds, const char* what) {
    if (!holds) throw PlanFault(what);
  }

  std::optional<std::uint64_t>& at(TensorId tensor, TierId tier) {
    need(tensor.index < graph_.tensors.size() && tier.index < machine_.tiers.size(), "an id of nothing");
    return regions_[tensor.index][tier.index];
  }
  std::byte* data(TensorId tensor, TierId tier) {
    const auto& region = at(tensor, tier);
    need(region.has_value(), "no region");
    return memory_[tier.index].data() + *region;
  }
  std::byte* in_place(TensorId tensor, TierId tier, EngineId engine) {
    std::byte* bytes = data(tensor, tier);
    need(machine_.reaches(engine, tier), "a kernel in a tier it cannot use");
    return bytes;
  }

  void poison(std::byte* bytes, std::size_t size) {
    interpreter::fill(bytes, size, interpreter::mix(13, ++poisons_));
  }

  /// Poisons a workspace before and after its kernel.
  void use_workspace(const Kernel& kernel, const Run& run) {
    if (kernel.workspace && !runs_without_workspace(kernel, run.variant))
      poison(in_place(kernel.workspace, run.tiers.back(), run.engine), graph_[kernel.workspace].bytes.count);
  }

  void begin(std::uint32_t step) {
    for (const Alloc& region : plan_.start) {
      const Tensor& tensor = graph_[region.tensor];
      const bool is_input = tensor.kind == TensorKind::input && !tensor.persistent;
      if (!is_input && step > 0) continue;
      need(!is_input || machine_.is_reached(region.tier), "an input where nobody can fill it");
      std::byte* bytes = data(region.tensor, region.tier);
      interpreter::fill(bytes, tensor.bytes.count, interpreter::given(region.tensor.index, step));
    }
  }

  /// Ends a step: regions of results are freed, and all others must be those of the start.
  void end() {
    need(std::all_of(things_.begin(), things_.end(), [](const Thing& one) { return one.done; }),
         "something outlives the step");
    things_.clear();
    last_on_.clear();
    tickets_.clear();
    waited_.clear();
    for (const TensorId result : graph_.results) {
      for (std::uint32_t tier = 0; tier < machine_.tiers.size(); ++tier) {
        if (at(result, {tier}) && !starts(result, {tier})) (*this)(Free{result, {tier}});
      }
    }
    std::size_t regions = 0;
    for (const auto& tiers : regions_) {
      for (const auto& region : tiers) regions += region.has_value() ? 1 : 0;
    }
    need(regions == plan_.start.size(), "other regions than at the start");
    for (const Alloc& region : plan_.start)
      need(at(region.tensor, region.tier) == region.offset, "a moved region");
  }

  bool starts(TensorId tensor, TierId tier) const {
    for (const Alloc& region : plan_.start) {
      if (region.tensor == tensor && region.tier == tier) return true;
    }
    return false;
  }

  /// Returns the bytes that all regions of a tensor hold.
  TensorBytes everywhere(TensorId tensor, bool in_place) {
    std::optional<TensorBytes> bytes;
    bool usable = false;
    for (std::uint32_t tier = 0; tier < machine_.tiers.size(); ++tier) {
      if (!at(tensor, {tier})) continue;
      const std::byte* here = data(tensor, {tier});
      TensorBytes found(here, here + graph_[tensor].bytes.count);
      need(!bytes || *bytes == found, "copies of one tensor disagree");
      bytes = std::move(found);
      usable |= machine_.is_reached({tier});
    }
    need(bytes && (usable || !in_place), "a tensor that is nowhere at hand");
    return *bytes;
  }

  const Graph& graph_;
  const Machine& machine_;
  const Plan& plan_;
  const CopyTiming timing_;
  std::vector<TensorBytes> memory_;                                 ///< by tier
  std::vector<std::vector<std::optional<std::uint64_t>>> regions_;  ///< offsets by tensor and tier
  std::vector<Thing> things_;                                       ///< of this step
  std::map<std::array<std::uint32_t, 3>, std::size_t> last_on_;     ///< by lane
  std::map<std::uint32_t, std::size_t> tickets_;
  std::set<std::uint32_t> waited_;
  std::uint64_t poisons_ = 0;
};

/// Returns the outcome of the plan after this many steps, or why it cannot be executed.
inline Result<StepBytes> interpret(const Graph& graph, const Machine& machine, const Plan& plan,
                                   CopyTiming timing, std::uint32_t steps) {
  try {
    return PlanInterpreter(graph, machine, plan, timing).run(steps);
  } catch (const PlanFault& fault) {
    return Error{ErrorCode::invalid_argument, fault.what()};
  }
}

}  // namespace terrace

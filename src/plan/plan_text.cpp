// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "terrace/plan.hpp"

namespace terrace {
namespace {

/// Names where there are any: a plan that is wrong must be readable, too.
class Writer {
 public:
  Writer(const Graph& graph, const Machine& machine) : graph_(graph), machine_(machine) {}

  std::string operator()(const Alloc& alloc) const {
    return fmt::format("alloc {} {} @{}", name(alloc.tensor), name(alloc.tier), alloc.offset);
  }
  std::string operator()(const Free& free) const {
    return fmt::format("free {} {}", name(free.tensor), name(free.tier));
  }
  std::string operator()(const Copy& copy) const {
    std::string tensors;
    for (const TensorId tensor : copy.tensors) tensors += (tensors.empty() ? "" : ", ") + name(tensor);
    return fmt::format("copy {} {} > {} #{}{}", tensors, name(copy.from), name(copy.to), copy.ticket,
                       after(copy.after));
  }
  std::string operator()(const Wait& wait) const { return fmt::format("wait #{}", wait.ticket); }
  std::string operator()(const Run& run) const {
    std::string text = "run " + name(run.kernel);
    if (const std::string variant = variant_name(run); !variant.empty()) text += " as " + variant;
    text += operands(run);
    if (run.engine != EngineId{}) text += " on " + name(run.engine);
    if (run.ticket) text += fmt::format(" #{}", *run.ticket);
    return text + after(run.after);
  }

 private:
  std::string name(TensorId id) const {
    return id.index < graph_.tensors.size() ? graph_[id].name : fmt::format("tensor[{}]", id.index);
  }
  std::string name(KernelId id) const {
    return id.index < graph_.kernels.size() ? graph_[id].name : fmt::format("kernel[{}]", id.index);
  }
  std::string name(TierId id) const {
    return id.index < machine_.tiers.size() ? machine_[id].name : fmt::format("tier[{}]", id.index);
  }

  std::string name(EngineId id) const {
    return id.index < machine_.engine_count() ? machine_.compute_of(id).name
                                              : fmt::format("engine[{}]", id.index);
  }

  static std::string after(const std::vector<std::uint32_t>& tickets) {
    return tickets.empty() ? "" : fmt::format(" after #{}", fmt::join(tickets, ", #"));
  }

  std::string variant_name(const Run& run) const {
    if (run.kernel.index < graph_.kernels.size()) {
      const auto& variants = graph_[run.kernel].variants;
      if (run.variant < variants.size()) return variants[run.variant].name;
    }
    return run.variant == 0 ? "" : fmt::format("variant[{}]", run.variant);
  }

  /// ` (x fast, w disk > y fast; scratch fast)`, or the tiers alone where they fit no operands.
  std::string operands(const Run& run) const {
    std::vector<std::string> words;
    for (const TierId tier : run.tiers) words.push_back(name(tier));
    if (run.kernel.index < graph_.kernels.size()) add_tensors(graph_[run.kernel], words);
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return fmt::format(" ({})", text);
  }

  void add_tensors(const Kernel& kernel, std::vector<std::string>& tiers) const {
    const std::size_t inputs = kernel.inputs.size(), operands = inputs + kernel.outputs.size();
    if (tiers.size() != operands + (kernel.workspace ? 1 : 0)) return;
    for (std::size_t i = 0; i < tiers.size(); ++i) {
      const TensorId tensor = i < inputs     ? kernel.inputs[i].tensor
                              : i < operands ? kernel.outputs[i - inputs].tensor
                                             : kernel.workspace;
      const char* mark = i < inputs ? "" : i < operands ? "> " : "~ ";
      tiers[i] = fmt::format("{}{} {}", mark, name(tensor), tiers[i]);
    }
  }

  const Graph& graph_;
  const Machine& machine_;
};

}  // namespace

bool has_one_lane(const Plan& plan) {
  return std::none_of(plan.instructions.begin(), plan.instructions.end(), [](const Instruction& one) {
    if (const auto* run = std::get_if<Run>(&one))
      return run->engine != EngineId{} || run->ticket || !run->after.empty();
    const auto* copy = std::get_if<Copy>(&one);
    return copy != nullptr && !copy->after.empty();
  });
}

std::string to_text(const Instruction& instruction, const Graph& graph, const Machine& machine) {
  return std::visit(Writer(graph, machine), instruction);
}

std::string to_text(const Plan& plan, const Graph& graph, const Machine& machine) {
  const Writer writer(graph, machine);
  std::string text = fmt::format("plan by {}, step {:.6g} s, bound {:.6g} s\n", plan.planner,
                                 plan.prediction.step.count(), plan.prediction.bound.count());
  for (std::size_t i = 0; i < plan.budget.size(); ++i) {
    const std::string tier = i < machine.tiers.size() ? machine.tiers[i].name : fmt::format("tier[{}]", i);
    text += fmt::format("budget {} {}\n", tier, to_string(plan.budget[i]));
  }
  for (const Alloc& region : plan.start) text += fmt::format("start {}\n", writer(region).substr(6));
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    text += fmt::format("{:6} {}\n", i, std::visit(writer, plan.instructions[i]));
  }
  return text;
}

}  // namespace terrace

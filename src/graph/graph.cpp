#include "terrace/graph.hpp"

#include <fmt/format.h>

namespace terrace {

std::string_view to_string(TensorKind kind) {
  switch (kind) {
    case TensorKind::input:
      return "input";
    case TensorKind::weight:
      return "weight";
    case TensorKind::activation:
      return "activation";
    case TensorKind::gradient:
      return "gradient";
    case TensorKind::optimizer_state:
      return "optimizer_state";
    case TensorKind::statistics:
      return "statistics";
    case TensorKind::workspace:
      return "workspace";
  }
  return "?";
}

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::update:
      return "update";
  }
  return "?";
}

TensorId find_tensor(const Graph& graph, std::string_view name) {
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].name == name) return {i};
  }
  return {};
}

std::int64_t parameters(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::weight) sum += tensor.shape.elements();
  }
  return sum;
}

namespace {

/// Walks the kernels in order and keeps what has been written so far.
class Validation {
 public:
  explicit Validation(const Graph& graph) : graph_(graph), written_(graph.tensors.size()) {
    for (std::size_t i = 0; i < written_.size(); ++i) {
      written_[i] = graph.tensors[i].persistent || graph.tensors[i].kind == TensorKind::input;
    }
  }

  Result<void> run() {
    for (const Kernel& kernel : graph_.kernels) {
      if (auto valid = kernel_is_valid(kernel); !valid) return valid;
    }
    for (const TensorId id : graph_.results) {
      if (!exists(id)) return wrong("the graph", "names a result that does not exist");
      if (!written_[id.index]) return wrong(graph_[id].name, "is a result that no kernel writes");
    }
    return {};
  }

 private:
  Result<void> kernel_is_valid(const Kernel& kernel) {
    if (kernel.layer >= graph_.layers.size())
      return wrong(kernel.name, "belongs to a layer that does not exist");
    for (const auto* operands : {&kernel.inputs, &kernel.outputs}) {
      for (const Operand& operand : *operands) {
        if (auto valid = operand_is_valid(kernel, operand); !valid) return valid;
      }
    }
    for (const Operand& operand : kernel.inputs) {
      if (!written_[operand.tensor.index]) {
        return wrong(kernel.name,
                     fmt::format("reads {} before any kernel writes it", graph_[operand.tensor].name));
      }
    }
    if (kernel.workspace && !exists(kernel.workspace))
      return wrong(kernel.name, "has a workspace that does not exist");
    for (const InPlacePair& pair : kernel.in_place) {
      if (pair.input >= kernel.inputs.size() || pair.output >= kernel.outputs.size()) {
        return wrong(kernel.name, "pairs an operand in place that it does not have");
      }
    }
    for (const Operand& operand : kernel.outputs) written_[operand.tensor.index] = true;
    return {};
  }

  Result<void> operand_is_valid(const Kernel& kernel, const Operand& operand) const {
    if (!exists(operand.tensor)) return wrong(kernel.name, "has an operand that does not exist");
    const Tensor& tensor = graph_[operand.tensor];
    if (operand.shape.elements() != tensor.shape.elements()) {
      return wrong(kernel.name, fmt::format("sees {} of shape {} as {}", tensor.name, to_string(tensor.shape),
                                            to_string(operand.shape)));
    }
    return {};
  }

  bool exists(TensorId id) const { return id.index < graph_.tensors.size(); }
  static Error wrong(const std::string& who, const std::string& what) {
    return {ErrorCode::invalid_argument, fmt::format("{} {}", who, what)};
  }

  const Graph& graph_;
  std::vector<bool> written_;
};

}  // namespace

Result<void> validate(const Graph& graph) { return Validation(graph).run(); }

}  // namespace terrace

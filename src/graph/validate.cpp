#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <unordered_set>

#include "graph/checked_size.hpp"
#include "terrace/graph.hpp"

namespace terrace {
namespace {

bool is_amount(double value) { return std::isfinite(value) && value >= 0; }

Error wrong(const std::string& who, const std::string& what) {
  return {ErrorCode::invalid_argument,
          fmt::format("{} {}", who.empty() ? "a kernel without a name" : who, what)};
}

/// Meets the parts of tensors in the graph's order and keeps what each whole has so far.
class Wholes {
 public:
  Result<void> add(const Tensor& part) {
    const PartOf& of = *part.part_of;
    if (of.name.empty()) return wrong(part.name, "is a part of a tensor without a name");
    if (!part.persistent || part.shape.rank() == 0 || part.shape[0] == 0)
      return wrong(part.name, "is a part, and only what has rows and is persistent has parts");
    auto& before = last_[of.name];
    const std::int64_t first = before == nullptr ? 0 : before->part_of->first + before->shape[0];
    if (of.first != first || of.rows < first || part.shape[0] > of.rows - first) {
      return wrong(part.name, fmt::format("has rows {}+{} of {} in {}, and the next ones are from {} on",
                                          of.first, part.shape[0], of.rows, of.name, first));
    }
    if (before != nullptr && !alike(*before, part))
      return wrong(part.name, fmt::format("is not like {}, a part of the same tensor", before->name));
    before = &part;
    return {};
  }

  Result<void> are_complete(const std::unordered_set<std::string_view>& names) const {
    for (const auto& [name, last] : last_) {
      if (names.count(name) != 0) return wrong(std::string(name), "is the name of a tensor and of parts");
      if (last->part_of->first + last->shape[0] != last->part_of->rows)
        return wrong(last->name, fmt::format("is the last part of {}, which has more rows", name));
    }
    return {};
  }

 private:
  static bool alike(const Tensor& a, const Tensor& b) {
    Shape rows = a.shape;
    if (rows.rank() == 0) return false;
    rows[0] = b.shape[0];
    return rows == b.shape && a.type == b.type && a.kind == b.kind && a.initial == b.initial &&
           a.part_of->rows == b.part_of->rows;
  }

  std::map<std::string_view, const Tensor*> last_;  // of each whole, by its name
};

/// Walks the kernels in order and keeps what has been written so far.
class Validation {
 public:
  explicit Validation(const Graph& graph) : graph_(graph), written_(graph.tensors.size()) {
    for (std::size_t i = 0; i < written_.size(); ++i) {
      written_[i] = graph.tensors[i].persistent || graph.tensors[i].kind == TensorKind::input;
    }
  }

  Result<void> run() {
    if (auto valid = tensors_are_valid(); !valid) return valid;
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
  Result<void> tensors_are_valid() const {
    std::unordered_set<std::string_view> names;
    Wholes wholes;
    std::uint64_t left = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      const Tensor& tensor = graph_.tensors[i];
      if (tensor.name.empty()) return wrong(fmt::format("tensor {}", i), "has no name");
      if (!names.insert(tensor.name).second) return wrong(tensor.name, "is the name of two tensors");
      if (auto valid = tensor_is_valid(tensor); !valid) return valid;
      if (tensor.part_of) {
        if (auto valid = wholes.add(tensor); !valid) return valid;
      }
      if (tensor.bytes.count > left)
        return wrong(tensor.name, "brings the tensors' bytes to more than 63 bits count");
      left -= tensor.bytes.count;
    }
    return wholes.are_complete(names);
  }

  static Result<void> tensor_is_valid(const Tensor& tensor) {
    const auto size = checked_size(tensor.shape, tensor.type);
    if (!size) return wrong(tensor.name, fmt::format("has an impossible shape {}", to_string(tensor.shape)));
    if (tensor.bytes < *size) {
      return wrong(tensor.name, fmt::format("has {} bytes, but {} {} takes {}", tensor.bytes.count,
                                            to_string(tensor.type), to_string(tensor.shape), size->count));
    }
    if (!std::isfinite(tensor.initial.a) || !std::isfinite(tensor.initial.b))
      return wrong(tensor.name, "starts with a number that is not finite");
    if (tensor.kind == TensorKind::workspace && tensor.persistent)
      return wrong(tensor.name, "is a workspace and cannot be persistent");
    if (tensor.kind == TensorKind::token && !tensor.persistent)
      return wrong(tensor.name, "is a token and must be persistent");
    return {};
  }

  Result<void> kernel_is_valid(const Kernel& kernel) {
    if (kernel.layer >= graph_.layers.size())
      return wrong(kernel.name, "belongs to a layer that does not exist");
    for (const auto& check :
         {&Validation::operation_is_valid, &Validation::operands_are_valid, &Validation::work_is_valid}) {
      if (auto valid = (this->*check)(kernel); !valid) return valid;
    }
    if (auto valid = take_workspace(kernel); !valid) return valid;
    return write_outputs(kernel);
  }

  Result<void> operation_is_valid(const Kernel& kernel) const {
    if (kernel.operation.empty()) return wrong(kernel.name, "has an operation without a name");
    for (const Attribute& attribute : kernel.attributes) {
      if (attribute.name.empty()) return wrong(kernel.name, "has an attribute without a name");
      const auto* number = std::get_if<double>(&attribute.value);
      if (number != nullptr && !std::isfinite(*number))
        return wrong(kernel.name, fmt::format("has an impossible {}", attribute.name));
    }
    return {};
  }

  Result<void> operands_are_valid(const Kernel& kernel) const {
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
    for (const InPlacePair& pair : kernel.in_place) {
      if (pair.input >= kernel.inputs.size() || pair.output >= kernel.outputs.size())
        return wrong(kernel.name, "pairs an operand in place that it does not have");
    }
    return {};
  }

  Result<void> operand_is_valid(const Kernel& kernel, const Operand& operand) const {
    if (!exists(operand.tensor)) return wrong(kernel.name, "has an operand that does not exist");
    const Tensor& tensor = graph_[operand.tensor];
    if (!checked_size(operand.shape, tensor.type) || operand.shape.elements() != tensor.shape.elements()) {
      return wrong(kernel.name, fmt::format("sees {} of shape {} as {}", tensor.name, to_string(tensor.shape),
                                            to_string(operand.shape)));
    }
    if (tensor.kind == TensorKind::workspace)
      return wrong(kernel.name, fmt::format("has the workspace {} as an operand", tensor.name));
    return {};
  }

  Result<void> work_is_valid(const Kernel& kernel) const {
    if (!is_amount(kernel.flops)) return wrong(kernel.name, fmt::format("does {} operations", kernel.flops));
    for (const Variant& variant : kernel.variants) {
      if (variant.time && !is_amount(variant.time->count())) {
        return wrong(kernel.name,
                     fmt::format("takes {} s as variant '{}'", variant.time->count(), variant.name));
      }
    }
    return {};
  }

  Result<void> take_workspace(const Kernel& kernel) {
    if (!kernel.workspace) return {};
    if (!exists(kernel.workspace)) return wrong(kernel.name, "has a workspace that does not exist");
    const Tensor& tensor = graph_[kernel.workspace];
    if (tensor.kind != TensorKind::workspace) {
      return wrong(kernel.name, fmt::format("takes {} for a workspace, which is of kind {}", tensor.name,
                                            to_string(tensor.kind)));
    }
    if (!workspaces_.insert(kernel.workspace.index).second)
      return wrong(kernel.name, fmt::format("shares the workspace {} with another kernel", tensor.name));
    return {};
  }

  Result<void> write_outputs(const Kernel& kernel) {
    std::unordered_set<std::uint32_t> outputs;
    for (const Operand& operand : kernel.outputs) {
      if (!outputs.insert(operand.tensor.index).second)
        return wrong(kernel.name, fmt::format("writes {} twice", graph_[operand.tensor].name));
      written_[operand.tensor.index] = true;
    }
    return {};
  }

  bool exists(TensorId id) const { return id.index < graph_.tensors.size(); }

  const Graph& graph_;
  std::vector<bool> written_;
  std::unordered_set<std::uint32_t> workspaces_;
};

}  // namespace

Result<void> validate(const Graph& graph) { return Validation(graph).run(); }

}  // namespace terrace

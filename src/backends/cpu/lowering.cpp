// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <map>

#include "backends/cpu/preferences.hpp"
#include "backends/cpu/recipe.hpp"
#include "nn/work.hpp"
#include "terrace/operation.hpp"

namespace terrace::cpu {
namespace {

class Lowering {
 public:
  explicit Lowering(const Graph& graph) : from_(graph), to_(graph), settled_(graph.tensors.size()) {
    to_.kernels.clear();
  }

  Graph run() && {
    for (const Kernel& kernel : from_.kernels) lower(kernel);
    return std::move(to_);
  }

 private:
  void lower(Kernel kernel) {
    Descs descs = preferred(
        kernel, [this](const Operand& operand) { return stored(operand); }, formats_);
    auto chosen = recipe(kernel, descs);
    // With all layouts settled oneDNN may take another implementation, and that is the one that will run.
    if (chosen && resolve(*chosen, descs)) chosen = recipe(kernel, descs);
    if (chosen) hold_left_overs(kernel, *chosen);
    for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
      if (is_opaque(Binding::Side::input, i, chosen)) continue;
      provide(kernel, kernel.inputs[i], descs.inputs[i], natural_input(kernel, i));
    }
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
      if (is_opaque(Binding::Side::output, i, chosen)) continue;
      settle(kernel.outputs[i], descs.outputs[i], natural_output(kernel, i));
    }
    if (chosen) add_scratch(kernel, *chosen);
    append(std::move(kernel));
  }

  /// Takes over what oneDNN chose where we left it open. Returns whether we did leave something open.
  static bool resolve(const Recipe& chosen, Descs& descs) {
    bool any_open = false;
    for (const Binding& binding : chosen.bindings) {
      if (binding.argument == DNNL_ARG_WORKSPACE) continue;
      Desc& desc = (binding.side == Binding::Side::input ? descs.inputs : descs.outputs)[binding.operand];
      if (!is_open(desc)) continue;
      desc = chosen.desc(binding.argument);
      any_open = true;
    }
    return any_open;
  }

  void hold_left_overs(const Kernel& kernel, const Recipe& chosen) {
    for (const Binding& binding : chosen.bindings) {
      if (binding.argument != DNNL_ARG_WORKSPACE || binding.side != Binding::Side::output) continue;
      hold_left_over(kernel.outputs[binding.operand], chosen.desc(binding.argument));
    }
  }

  /// What forward leaves for backward has a form only oneDNN knows, and the size it says.
  void hold_left_over(const Operand& operand, const Desc& desc) {
    Tensor& tensor = to_[operand.tensor];
    tensor.bytes = Bytes{desc.get_size()};
    tensor.layout = is_blocked(desc) && desc.dims() == dims_of(tensor.shape) ? to_layout(desc) : "opaque";
  }

  static bool is_opaque(Binding::Side side, std::size_t operand, const std::optional<Recipe>& chosen) {
    if (!chosen) return false;
    for (const Binding& binding : chosen->bindings) {
      if (binding.side == side && binding.operand == operand) return binding.argument == DNNL_ARG_WORKSPACE;
    }
    return false;
  }

  /// The stored form of an operand as this view sees it; empty if the view needs a row-major tensor and it is
  /// not.
  std::optional<Desc> stored(const Operand& operand) const {
    const Tensor& tensor = to_[operand.tensor];
    if (tensor.layout.empty()) return row_major(operand.shape, tensor.type);
    if (tensor.layout == "opaque") return std::nullopt;
    const Desc desc = from_layout(tensor.layout, tensor.type);
    if (operand.shape == tensor.shape) return desc;
    if (lies_row_major(desc)) return row_major(operand.shape, tensor.type);
    return std::nullopt;
  }

  /// Makes an input available as `wanted`, by a reorder if need be.
  void provide(const Kernel& kernel, Operand& operand, const Desc& wanted, const Desc& natural) {
    const Tensor& tensor = to_[operand.tensor];
    // Who sees a weight in another shape cannot say how it should be stored in its own.
    const bool may_choose = tensor.persistent && !settled_[operand.tensor.index];
    if (may_choose && operand.shape == tensor.shape) {
      store_as(operand.tensor, wanted, natural);
    } else {
      settled_[operand.tensor.index] = true;
      auto now = stored(operand);
      if (!now) {
        const Operand whole{operand.tensor, tensor.shape, {}, {}};
        const Desc plain = row_major(tensor.shape, tensor.type);
        operand.tensor = reorder(kernel, whole, from_layout(tensor.layout, tensor.type), plain);
      }
      // Row-major is what the kernel calls natural, in extents that may be others: filters in groups.
      if (!now || to_[operand.tensor].layout.empty()) now = natural;
      if (!same_memory(*now, wanted)) operand.tensor = reorder(kernel, operand, *now, wanted);
    }
    operand.layout = text_of(wanted, operand.shape);
  }

  void settle(Operand& operand, const Desc& desc, const Desc& natural) {
    if (!to_[operand.tensor].persistent) store_as(operand.tensor, desc, natural);
    operand.layout = text_of(desc, operand.shape);
  }

  /// Axes that a kernel exchanges are written down even where the extents do not tell.
  void store_as(TensorId id, const Desc& desc, const Desc& natural) {
    Tensor& tensor = to_[id];
    tensor.layout = natural == row_major(tensor.shape) ? text_of(desc, tensor.shape) : to_layout(desc);
    tensor.bytes = std::max(Bytes{desc.get_size()},
                            size_of(tensor.type) * static_cast<std::uint64_t>(tensor.shape.elements()));
    settled_[id.index] = true;
  }

  static std::string text_of(const Desc& desc, const Shape& shape) {
    return desc.dims() == dims_of(shape) && desc == row_major(shape) ? "" : to_layout(desc);
  }

  TensorId reorder(const Kernel& reader, const Operand& operand, const Desc& now, const Desc& wanted) {
    const Tensor source = to_[operand.tensor];
    Kernel kernel;
    kernel.operation = to_string(Operation::reorder);
    kernel.name = fmt::format("{} for {}", source.name, reader.name);
    kernel.layer = reader.layer;
    kernel.phase = reader.phase;
    Tensor copy = source;
    copy.name = fmt::format("{} ({})", kernel.name, to_.tensors.size());
    copy.persistent = false;
    copy.initial = {};
    copy.part_of.reset();
    if (copy.kind == TensorKind::input || copy.kind == TensorKind::weight) copy.kind = TensorKind::activation;
    const TensorId id{static_cast<std::uint32_t>(to_.tensors.size())};
    to_.tensors.push_back(std::move(copy));
    settled_.push_back(false);
    to_[id].shape = operand.shape;
    store_as(id, wanted, row_major(operand.shape));
    kernel.inputs = {{operand.tensor, operand.shape, {}, text_of(now, operand.shape)}};
    kernel.outputs = {{id, operand.shape, {}, text_of(wanted, operand.shape)}};
    add_scratch(kernel, *recipe(kernel, {{now}, {wanted}}));
    append(std::move(kernel));
    return id;
  }

  void add_scratch(Kernel& kernel, const Recipe& chosen) {
    const Bytes scratch = chosen.scratch();
    kernel.variants = {{chosen.primitive.impl_info_str(), scratch, {}}};
    if (scratch == Bytes{}) return;
    Tensor tensor;
    tensor.name = fmt::format("scratch of {} ({})", kernel.name, to_.tensors.size());
    tensor.shape = {static_cast<std::int64_t>(scratch.count)};
    tensor.type = DataType::u8;
    tensor.kind = TensorKind::workspace;
    tensor.bytes = scratch;
    kernel.workspace = {static_cast<std::uint32_t>(to_.tensors.size())};
    to_.tensors.push_back(std::move(tensor));
    settled_.push_back(true);
  }

  void append(Kernel kernel) {
    count_work(to_, kernel);
    to_.kernels.push_back(std::move(kernel));
  }

  const Graph& from_;
  Graph to_;
  std::vector<bool> settled_;  ///< of persistent tensors: a kernel has chosen the layout
  PoolingFormats formats_;
};

Error cannot(const std::string& why) { return {ErrorCode::unsupported, why}; }

Result<void> can_run(const Graph& graph) {
  for (const Kernel& kernel : graph.kernels) {
    if (operation_of(kernel) == Operation::custom) {
      return cannot(fmt::format(
          "kernel {} is not an operation this engine has: such graphs can be planned and simulated, not run",
          kernel.name));
    }
  }
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.type == DataType::f16 || tensor.type == DataType::f64 || tensor.type == DataType::i64) {
      return cannot(
          fmt::format("tensor {} holds {}, and this processor's kernels compute with f32, bf16, i32 and u8",
                      tensor.name, to_string(tensor.type)));
    }
  }
  return check_operations(graph);
}

}  // namespace

Result<Graph> lower(const Graph& graph, unsigned threads) {
  if (auto known = can_run(graph); !known) return known.error();
  omp_set_num_threads(static_cast<int>(threads));
  return Lowering(graph).run();
}

}  // namespace terrace::cpu

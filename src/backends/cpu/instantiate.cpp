// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/instantiate.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/onednn_kernel.hpp"
#include "base/check.hpp"
#include "graph/variant.hpp"
#include "terrace/operation.hpp"

namespace terrace::cpu {
namespace {

Desc desc_of(const Graph& graph, const Operand& operand) {
  const DataType type = graph[operand.tensor].type;
  return operand.layout.empty() ? row_major(operand.shape, type) : from_layout(operand.layout, type);
}

/// The running statistics of a batch normalisation; the variance without bias, as PyTorch keeps it.
OneDnnKernel::Extra follow_statistics(const Kernel& kernel) {
  const Shape& x = kernel.inputs[0].shape;
  const float momentum = attributes_as<NormAttributes>(kernel).momentum;
  const std::int64_t channels = x[1];
  const auto samples = static_cast<float>(x[0] * x[2] * x[3]);
  const float unbiased = samples > 1 ? samples / (samples - 1) : 1;
  return [=](Operands at) {
    const auto follow = [=](float* average, const float* batch, float weight) {
      for (std::int64_t c = 0; c < channels; ++c)
        average[c] = (1 - momentum) * average[c] + weight * batch[c];
    };
    follow(floats(at, 3), floats(at, 6), momentum);
    follow(floats(at, 4), floats(at, 7), momentum * unbiased);
  };
}

/// The state of a recurrent layer starts at zero, and oneDNN adds to the gradients of its weights.
OneDnnKernel::Extra clear_state(const Graph& graph, const Kernel& kernel, const Recipe& recipe) {
  struct Range {
    std::size_t operand, begin, bytes;
  };
  const std::size_t workspace = kernel.inputs.size() + kernel.outputs.size();
  const std::size_t begin = recipe.offset(0).count;
  std::vector<Range> ranges{{workspace, begin, recipe.scratch().count - begin}};
  if (operation_of(kernel) == Operation::lstm_backward) {
    for (std::size_t i = 1; i < kernel.outputs.size(); ++i) {
      ranges.push_back({kernel.inputs.size() + i, 0, graph[kernel.outputs[i].tensor].bytes.count});
    }
  }
  return [ranges](Operands at) {
    for (const Range& range : ranges) std::memset(at[range.operand] + range.begin, 0, range.bytes);
  };
}

/// Takes the parts of a joined tensor apart: one copy out of a slice for each.
class ConcatBackward : public RunnableKernel {
 public:
  ConcatBackward(const Kernel& kernel, const Descs& descs) {
    const auto axis = static_cast<std::size_t>(attributes_as<ConcatAttributes>(kernel).axis);
    Dims offset(descs.inputs[0].dims().size());
    for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
      const Desc slice = descs.inputs[0].submemory_desc(descs.outputs[i].dims(), offset);
      const dnnl::reorder::primitive_desc copy(engine(), slice, engine(), descs.outputs[i],
                                               user_scratchpad());
      check(copy.scratchpad_desc().get_size() == 0, "copies out of a slice need no scratch");
      copies_.emplace_back(
          copy, std::vector<Slot>{{DNNL_ARG_FROM, slice, 0}, {DNNL_ARG_TO, descs.outputs[i], 1 + i}});
      offset[axis] += descs.outputs[i].dims()[axis];
    }
  }
  void run(Operands operands, const StepContext&) override {
    for (Primitive& copy : copies_) copy.run(operands);
  }

 private:
  std::vector<Primitive> copies_;
};

/// Returns whether the operation takes weights and gradients in whatever axes they come, as long as all have
/// the same.
bool keeps_axes(Operation operation) {
  return operation == Operation::sgd || operation == Operation::adam || operation == Operation::add;
}

/// The axes of a tensor as this kernel sees them, if the tensor is an operand and they are not those of its
/// shape.
std::optional<Desc> natural_in(const Kernel& kernel, TensorId id) {
  const auto if_own = [](const Desc& natural, const Shape& shape) {
    return natural == row_major(shape) ? std::nullopt : std::optional(natural);
  };
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
    if (kernel.inputs[i].tensor == id) return if_own(natural_input(kernel, i), kernel.inputs[i].shape);
  }
  for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
    if (kernel.outputs[i].tensor == id) return if_own(natural_output(kernel, i), kernel.outputs[i].shape);
  }
  return std::nullopt;
}

/// Adds the tensors that lie as `id` does because one kernel takes them together.
void add_companions(const Graph& graph, TensorId id, std::vector<TensorId>& companions) {
  const auto is_new = [&](TensorId other) {
    return graph[other].layout == graph[id].layout &&
           std::find(companions.begin(), companions.end(), other) == companions.end();
  };
  for (const Kernel& kernel : graph.kernels) {
    if (!keeps_axes(operation_of(kernel))) continue;
    std::vector<TensorId> operands;
    for (const Operand& operand : kernel.inputs) operands.push_back(operand.tensor);
    for (const Operand& operand : kernel.outputs) operands.push_back(operand.tensor);
    if (std::find(operands.begin(), operands.end(), id) == operands.end()) continue;
    std::copy_if(operands.begin(), operands.end(), std::back_inserter(companions), is_new);
  }
}

/// Returns how a tensor would be described if it lay as PyTorch stores it, in the axes of its layout. States
/// of the optimizer and sums of gradients have those of the weight they belong to.
Desc natural_desc(const Graph& graph, TensorId id) {
  const Dims dims = cpu::desc_of(graph[id]).dims();
  std::vector<TensorId> companions{id};
  for (std::size_t i = 0; i < companions.size(); ++i) {
    for (const Kernel& kernel : graph.kernels) {
      const auto natural = natural_in(kernel, companions[i]);
      if (natural && natural->dims() == dims) return *natural;
    }
    add_companions(graph, companions[i], companions);
  }
  return row_major(graph[id].shape);
}

void reorder_now(const Desc& from, const std::byte* source, const Desc& to, std::byte* target) {
  const Kernel none;
  Recipe recipe = reorder_recipe(none, {{from}, {to}});
  std::vector<std::byte> scratch(recipe.scratch().count);
  std::vector<Slot> slots{{DNNL_ARG_FROM, from, 0}, {DNNL_ARG_TO, to, 1}};
  if (!scratch.empty())
    slots.push_back({DNNL_ARG_SCRATCHPAD, recipe.primitive.query_md(dnnl::query::scratchpad_md, 0), 2});
  std::byte* const operands[] = {const_cast<std::byte*>(source), target, scratch.data()};
  Primitive(recipe.primitive, slots).run(operands);
}

/// The kernel's first variant. A direct convolution is no other implementation of Winograd's algorithm: it
/// has a description of its own.
Recipe variant_of(const Kernel& kernel, const Descs& descs, const Recipe& usual) {
  const std::string& name = kernel.variants.front().name;
  if (name == usual.primitive.impl_info_str()) return usual;
  const auto direct = direct_convolution(kernel, descs);
  if (direct && name == direct->primitive.impl_info_str()) return *direct;
  return implemented_as(usual, name);
}

}  // namespace

Descs descs_of(const Graph& graph, const Kernel& kernel) {
  Descs descs;
  for (const Operand& operand : kernel.inputs) descs.inputs.push_back(desc_of(graph, operand));
  for (const Operand& operand : kernel.outputs) descs.outputs.push_back(desc_of(graph, operand));
  return descs;
}

std::unique_ptr<RunnableKernel> instantiate(const Graph& graph, const Kernel& kernel) {
  if (auto function = own_kernel(graph, kernel)) return std::make_unique<FunctionKernel>(std::move(function));
  const Descs descs = descs_of(graph, kernel);
  if (operation_of(kernel) == Operation::concat_backward)
    return std::make_unique<ConcatBackward>(kernel, descs);
  auto chosen = recipe(kernel, descs);
  check(chosen.has_value(), "every operation but a foreign one has an implementation");
  if (!kernel.variants.empty()) chosen = variant_of(kernel, descs, *chosen);
  check(chosen->scratch() <= (kernel.workspace ? graph[kernel.workspace].bytes : Bytes{}),
        "a lowered kernel brings its scratch memory");
  OneDnnKernel::Extra before, after;
  if (operation_of(kernel) == Operation::batch_norm) after = follow_statistics(kernel);
  if (!chosen->spares.empty()) before = clear_state(graph, kernel, *chosen);
  return std::make_unique<OneDnnKernel>(kernel, *chosen, std::move(before), std::move(after));
}

Kernels instantiate(const Graph& graph) {
  Kernels kernels;
  kernels.reserve(graph.kernels.size());
  for (const Kernel& kernel : graph.kernels) {
    auto& variants = kernels.emplace_back();
    for (std::uint32_t i = 0; i < variant_count(kernel); ++i)
      variants.push_back(instantiate(graph, as_variant(kernel, i)));
  }
  return kernels;
}

void from_row_major(const Graph& graph, TensorId id, const std::byte* row_major, std::byte* stored) {
  const Tensor& tensor = graph[id];
  const auto plain = size_of(tensor.type).count * static_cast<std::uint64_t>(tensor.shape.elements());
  if (tensor.layout.empty()) {
    std::memcpy(stored, row_major, plain);
  } else {
    reorder_now(natural_desc(graph, id), row_major, cpu::desc_of(tensor), stored);
  }
}

void to_row_major(const Graph& graph, TensorId id, const std::byte* stored, std::byte* row_major) {
  const Tensor& tensor = graph[id];
  const auto plain = size_of(tensor.type).count * static_cast<std::uint64_t>(tensor.shape.elements());
  if (tensor.layout.empty()) {
    std::memcpy(row_major, stored, plain);
  } else {
    reorder_now(cpu::desc_of(tensor), stored, natural_desc(graph, id), row_major);
  }
}

}  // namespace terrace::cpu

#include "backends/cpu/recipe.hpp"

#include "base/check.hpp"
#include "base/system.hpp"
#include "terrace/operation.hpp"

namespace terrace::cpu {
namespace {

dnnl::engine make_engine() {
  // Must come before anything else is asked of oneDNN.
  const InstructionSets sets = probe_instruction_sets();
  if (sets.amx_advertised && !sets.amx_works) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
  dnnl::set_primitive_cache_capacity(4096);
  return {dnnl::engine::kind::cpu, 0};
}

bool is_transposed(Operation operation) {
  return operation == Operation::conv_transpose2d || operation == Operation::conv_transpose2d_backward_data ||
         operation == Operation::conv_transpose2d_backward_weights;
}

/// Filters as oneDNN sees them: [groups,] outputs, inputs, height, width.
Desc natural_filter(const Kernel& kernel, const Shape& shape) {
  const std::int64_t groups = attributes_as<Window>(kernel).groups;
  Dims dims;
  std::vector<int> order;
  if (is_transposed(operation_of(kernel))) {
    dims = {shape[1], shape[0] / groups, shape[2], shape[3]};
    order = {1, 0, 2, 3};
  } else {
    dims = {shape[0] / groups, shape[1], shape[2], shape[3]};
    order = {0, 1, 2, 3};
  }
  if (groups > 1) {
    dims.insert(dims.begin(), groups);
    for (int& axis : order) ++axis;
    order.insert(order.begin(), 0);
  }
  return ordered(dims, order);
}

/// Gates as oneDNN sees them: layers, directions, inputs, gates, hidden.
Desc natural_gates(const Shape& shape) {
  if (shape.rank() == 1) return row_major(Dims{1, 1, 4, shape[0] / 4});
  return ordered({1, 1, shape[1], 4, shape[0] / 4}, {0, 1, 3, 4, 2});
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine cpu = make_engine();
  return cpu;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Desc Recipe::desc(int argument) const { return primitive.query_md(dnnl::query::exec_arg_md, argument); }

Bytes Recipe::own_scratch() const {
  return Bytes{primitive.query_md(dnnl::query::scratchpad_md, 0).get_size()};
}

Bytes Recipe::scratch() const { return spares.empty() ? own_scratch() : offset(spares.size()); }

Bytes Recipe::offset(std::size_t spare) const {
  constexpr std::uint64_t kLine = 64;
  const auto rounded = [](std::uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
  std::uint64_t end = rounded(own_scratch().count);
  for (std::size_t i = 0; i < spare; ++i) end += rounded(spares[i].desc.get_size());
  return Bytes{end};
}

Desc natural_input(const Kernel& kernel, std::size_t input) {
  const Shape& shape = kernel.inputs[input].shape;
  switch (operation_of(kernel)) {
    case Operation::conv2d:
    case Operation::conv2d_backward_data:
    case Operation::conv_transpose2d:
    case Operation::conv_transpose2d_backward_data:
      if (input == 1) return natural_filter(kernel, shape);
      break;
    case Operation::lstm:
    case Operation::lstm_backward:
      if (input >= 1 && input <= 3) return natural_gates(shape);
      break;
    default:
      break;
  }
  return row_major(shape);
}

Desc natural_output(const Kernel& kernel, std::size_t output) {
  const Shape& shape = kernel.outputs[output].shape;
  switch (operation_of(kernel)) {
    case Operation::conv2d_backward_weights:
    case Operation::conv_transpose2d_backward_weights:
      if (output == 0) return natural_filter(kernel, shape);
      break;
    case Operation::lstm_backward:
      if (output >= 1) return natural_gates(shape);
      break;
    default:
      break;
  }
  return row_major(shape);
}

std::optional<Recipe> recipe(const Kernel& kernel, const Descs& descs) {
  switch (operation_of(kernel)) {
    case Operation::conv2d:
    case Operation::conv2d_backward_data:
    case Operation::conv2d_backward_weights:
      return convolution_recipe(kernel, descs);
    case Operation::conv_transpose2d:
    case Operation::conv_transpose2d_backward_data:
    case Operation::conv_transpose2d_backward_weights:
      return transposed_recipe(kernel, descs);
    case Operation::linear:
    case Operation::linear_backward_data:
    case Operation::linear_backward_weights:
      return linear_recipe(kernel, descs);
    case Operation::matmul:
      return matmul_recipe(kernel, descs);
    case Operation::max_pool2d:
    case Operation::max_pool2d_backward:
    case Operation::avg_pool2d:
    case Operation::avg_pool2d_backward:
      return pooling_recipe(kernel, descs);
    case Operation::batch_norm:
    case Operation::batch_norm_backward:
    case Operation::batch_norm_inference:
      return batch_norm_recipe(kernel, descs);
    case Operation::relu:
    case Operation::relu_backward:
    case Operation::leaky_relu:
    case Operation::leaky_relu_backward:
    case Operation::tanh:
    case Operation::tanh_backward:
    case Operation::sigmoid:
    case Operation::sigmoid_backward:
      return elementwise_recipe(kernel, descs);
    case Operation::add:
    case Operation::mul:
      return binary_recipe(kernel, descs);
    case Operation::concat:
      return concat_recipe(kernel, descs);
    case Operation::reorder:
      return reorder_recipe(kernel, descs);
    case Operation::lstm:
    case Operation::lstm_backward:
      return lstm_recipe(kernel, descs);
    default:
      return std::nullopt;
  }
}

}  // namespace terrace::cpu

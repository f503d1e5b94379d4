// Linear layers and matrix products.
#include "backends/cpu/recipe.hpp"
#include "terrace/operation.hpp"

namespace terrace::cpu {
namespace {

using Side = Binding::Side;

dnnl::inner_product_forward::primitive_desc linear_forward(const Desc& x, const Desc& weights,
                                                           const Desc* bias, const Desc& y) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto desc = bias != nullptr ? dnnl::inner_product_forward::desc(kind, x, weights, *bias, y)
                                    : dnnl::inner_product_forward::desc(kind, x, weights, y);
  return {desc, user_scratchpad(), engine()};
}

Recipe linear_weights_recipe(const Kernel& kernel, const Descs& descs) {
  const Desc &x = descs.inputs[0], &dy = descs.inputs[1], &dw = descs.outputs[0];
  const bool bias = kernel.outputs.size() > 1;
  const auto hint = linear_forward(x, dw, bias ? &descs.outputs[1] : nullptr, dy);
  const auto desc = bias ? dnnl::inner_product_backward_weights::desc(x, dw, descs.outputs[1], dy)
                         : dnnl::inner_product_backward_weights::desc(x, dw, dy);
  Recipe recipe{dnnl::inner_product_backward_weights::primitive_desc(desc, user_scratchpad(), engine(), hint),
                {{DNNL_ARG_SRC, Side::input, 0},
                 {DNNL_ARG_DIFF_DST, Side::input, 1},
                 {DNNL_ARG_DIFF_WEIGHTS, Side::output, 0}}};
  if (bias) recipe.bindings.push_back({DNNL_ARG_DIFF_BIAS, Side::output, 1});
  return recipe;
}

/// [batch, rows, columns], with the last two axes exchanged if the operand is read transposed.
Desc matrix(const Shape& shape, bool transposed) {
  const std::size_t rank = shape.rank();
  const std::int64_t rows = shape[rank - 2], columns = shape[rank - 1];
  const std::int64_t batch = shape.elements() / std::max<std::int64_t>(rows * columns, 1);
  return transposed ? ordered({batch, columns, rows}, {0, 2, 1}) : row_major(Dims{batch, rows, columns});
}

}  // namespace

Recipe linear_recipe(const Kernel& kernel, const Descs& descs) {
  if (operation_of(kernel) == Operation::linear_backward_weights) return linear_weights_recipe(kernel, descs);
  if (operation_of(kernel) == Operation::linear_backward_data) {
    const Desc &dy = descs.inputs[0], &weights = descs.inputs[1], &dx = descs.outputs[0];
    return {dnnl::inner_product_backward_data::primitive_desc({dx, weights, dy}, user_scratchpad(), engine(),
                                                              linear_forward(dx, weights, nullptr, dy)),
            {{DNNL_ARG_DIFF_DST, Side::input, 0},
             {DNNL_ARG_WEIGHTS, Side::input, 1},
             {DNNL_ARG_DIFF_SRC, Side::output, 0}}};
  }
  const bool bias = kernel.inputs.size() > 2;
  Recipe recipe{
      linear_forward(descs.inputs[0], descs.inputs[1], bias ? &descs.inputs[2] : nullptr, descs.outputs[0]),
      {{DNNL_ARG_SRC, Side::input, 0}, {DNNL_ARG_WEIGHTS, Side::input, 1}, {DNNL_ARG_DST, Side::output, 0}}};
  if (bias) recipe.bindings.push_back({DNNL_ARG_BIAS, Side::input, 2});
  return recipe;
}

Recipe matmul_recipe(const Kernel& kernel, const Descs&) {
  const auto& options = attributes_as<MatmulAttributes>(kernel);
  auto attributes = user_scratchpad();
  if (options.scale != 1) attributes.set_output_scales(0, {options.scale});
  const dnnl::matmul::desc desc(matrix(kernel.inputs[0].shape, options.transpose_a),
                                matrix(kernel.inputs[1].shape, options.transpose_b),
                                matrix(kernel.outputs[0].shape, false));
  return {
      dnnl::matmul::primitive_desc(desc, attributes, engine()),
      {{DNNL_ARG_SRC, Side::input, 0}, {DNNL_ARG_WEIGHTS, Side::input, 1}, {DNNL_ARG_DST, Side::output, 0}}};
}

}  // namespace terrace::cpu

// Pooling and batch normalisation.
#include "backends/cpu/recipe.hpp"
#include "terrace/operation.hpp"

namespace terrace::cpu {
namespace {

using Side = Binding::Side;

dnnl::algorithm pooling_algorithm(const Kernel& kernel) {
  if (operation_of(kernel) == Operation::max_pool2d ||
      operation_of(kernel) == Operation::max_pool2d_backward) {
    return dnnl::algorithm::pooling_max;
  }
  return attributes_as<Window>(kernel).include_padding ? dnnl::algorithm::pooling_avg_include_padding
                                                       : dnnl::algorithm::pooling_avg_exclude_padding;
}

dnnl::normalization_flags flags_of(const Kernel& kernel) {
  auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  if (attributes_as<NormAttributes>(kernel).relu) flags |= dnnl::normalization_flags::fuse_norm_relu;
  return flags;
}

dnnl::batch_normalization_forward::primitive_desc norm_forward(const Kernel& kernel, const Desc& x) {
  const float epsilon = attributes_as<NormAttributes>(kernel).epsilon;
  return {{dnnl::prop_kind::forward_training, x, epsilon, flags_of(kernel)}, user_scratchpad(), engine()};
}

/// Running statistics are read as they are; a relu follows as an operation of its own on the result.
Recipe norm_inference(const Kernel& kernel, const Descs& descs) {
  const auto& options = attributes_as<NormAttributes>(kernel);
  auto attributes = user_scratchpad();
  if (options.relu) {
    dnnl::post_ops then;
    then.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    attributes.set_post_ops(then);
  }
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift |
                     dnnl::normalization_flags::use_global_stats;
  const dnnl::batch_normalization_forward::desc desc(dnnl::prop_kind::forward_inference, descs.inputs[0],
                                                     options.epsilon, flags);
  return {dnnl::batch_normalization_forward::primitive_desc(desc, attributes, engine()),
          {{DNNL_ARG_SRC, Side::input, 0},
           {DNNL_ARG_SCALE, Side::input, 1},
           {DNNL_ARG_SHIFT, Side::input, 2},
           {DNNL_ARG_MEAN, Side::input, 3},
           {DNNL_ARG_VARIANCE, Side::input, 4},
           {DNNL_ARG_DST, Side::output, 0}}};
}

}  // namespace

Recipe pooling_recipe(const Kernel& kernel, const Descs& descs) {
  const Window& window = attributes_as<Window>(kernel);
  const Dims strides{window.stride[0], window.stride[1]}, size{window.kernel[0], window.kernel[1]},
      padding{window.padding[0], window.padding[1]};
  const bool forward =
      operation_of(kernel) == Operation::max_pool2d || operation_of(kernel) == Operation::avg_pool2d;
  const bool keeps_winners = operation_of(kernel) == Operation::max_pool2d ? kernel.outputs.size() > 1 : true;
  const auto kind = keeps_winners ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const Desc &large = forward ? descs.inputs[0] : descs.outputs[0],
             &small = forward ? descs.outputs[0] : descs.inputs[0];
  const auto algorithm = pooling_algorithm(kernel);
  const dnnl::pooling_forward::primitive_desc hint(
      {kind, algorithm, large, small, strides, size, padding, padding}, user_scratchpad(), engine());
  if (forward) {
    Recipe recipe{hint, {{DNNL_ARG_SRC, Side::input, 0}, {DNNL_ARG_DST, Side::output, 0}}};
    if (kernel.outputs.size() > 1) recipe.bindings.push_back({DNNL_ARG_WORKSPACE, Side::output, 1});
    return recipe;
  }
  Recipe recipe{
      dnnl::pooling_backward::primitive_desc({algorithm, large, small, strides, size, padding, padding},
                                             user_scratchpad(), engine(), hint),
      {{DNNL_ARG_DIFF_DST, Side::input, 0}, {DNNL_ARG_DIFF_SRC, Side::output, 0}}};
  if (kernel.inputs.size() > 1) recipe.bindings.push_back({DNNL_ARG_WORKSPACE, Side::input, 1});
  return recipe;
}

Recipe batch_norm_recipe(const Kernel& kernel, const Descs& descs) {
  if (operation_of(kernel) == Operation::batch_norm_inference) return norm_inference(kernel, descs);
  const bool relu = attributes_as<NormAttributes>(kernel).relu;
  if (operation_of(kernel) == Operation::batch_norm) {
    Recipe recipe{norm_forward(kernel, descs.inputs[0]),
                  {{DNNL_ARG_SRC, Side::input, 0},
                   {DNNL_ARG_SCALE, Side::input, 1},
                   {DNNL_ARG_SHIFT, Side::input, 2},
                   {DNNL_ARG_DST, Side::output, 0},
                   {DNNL_ARG_MEAN, Side::output, 1},
                   {DNNL_ARG_VARIANCE, Side::output, 2}}};
    if (relu) recipe.bindings.push_back({DNNL_ARG_WORKSPACE, Side::output, 5});
    return recipe;
  }
  const Desc &dy = descs.inputs[0], &x = descs.inputs[1];
  const float epsilon = attributes_as<NormAttributes>(kernel).epsilon;
  const dnnl::batch_normalization_backward::desc desc(dnnl::prop_kind::backward, dy, x, epsilon,
                                                      flags_of(kernel));
  Recipe recipe{dnnl::batch_normalization_backward::primitive_desc(desc, user_scratchpad(), engine(),
                                                                   norm_forward(kernel, x)),
                {{DNNL_ARG_DIFF_DST, Side::input, 0},
                 {DNNL_ARG_SRC, Side::input, 1},
                 {DNNL_ARG_MEAN, Side::input, 2},
                 {DNNL_ARG_VARIANCE, Side::input, 3},
                 {DNNL_ARG_SCALE, Side::input, 4},
                 // oneDNN 2.6 demands the shift and never reads it.
                 {DNNL_ARG_SHIFT, Side::input, 4},
                 {DNNL_ARG_DIFF_SRC, Side::output, 0},
                 {DNNL_ARG_DIFF_SCALE, Side::output, 1},
                 {DNNL_ARG_DIFF_SHIFT, Side::output, 2}}};
  if (relu) recipe.bindings.push_back({DNNL_ARG_WORKSPACE, Side::input, 5});
  return recipe;
}

}  // namespace terrace::cpu

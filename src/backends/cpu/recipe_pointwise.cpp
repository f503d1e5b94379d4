// Element-wise operations, concatenation and changes of layout.
#include "backends/cpu/recipe.hpp"
#include "base/check.hpp"
#include "terrace/operation.hpp"

namespace terrace::cpu {
namespace {

using Side = Binding::Side;

struct Eltwise {
  dnnl::algorithm forward, backward;  ///< backward from y alone
  float alpha = 0;
};

Eltwise eltwise_of(const Kernel& kernel) {
  switch (operation_of(kernel)) {
    case Operation::relu:
    case Operation::relu_backward:
      return {dnnl::algorithm::eltwise_relu, dnnl::algorithm::eltwise_relu_use_dst_for_bwd};
    case Operation::leaky_relu:
    case Operation::leaky_relu_backward:
      return {dnnl::algorithm::eltwise_relu, dnnl::algorithm::eltwise_relu_use_dst_for_bwd,
              attributes_as<SlopeAttributes>(kernel).slope};
    case Operation::tanh:
    case Operation::tanh_backward:
      return {dnnl::algorithm::eltwise_tanh, dnnl::algorithm::eltwise_tanh_use_dst_for_bwd};
    default:
      return {dnnl::algorithm::eltwise_logistic, dnnl::algorithm::eltwise_logistic_use_dst_for_bwd};
  }
}

}  // namespace

Recipe elementwise_recipe(const Kernel& kernel, const Descs& descs) {
  const Eltwise eltwise = eltwise_of(kernel);
  const Desc& data = descs.inputs.back();
  const bool forward = kernel.inputs.size() == 1;
  const dnnl::eltwise_forward::primitive_desc hint(
      {dnnl::prop_kind::forward_training, forward ? eltwise.forward : eltwise.backward, data, eltwise.alpha},
      user_scratchpad(), engine());
  if (forward) return {hint, {{DNNL_ARG_SRC, Side::input, 0}, {DNNL_ARG_DST, Side::output, 0}}};
  return {dnnl::eltwise_backward::primitive_desc({eltwise.backward, descs.inputs[0], data, eltwise.alpha},
                                                 user_scratchpad(), engine(), hint),
          {{DNNL_ARG_DIFF_DST, Side::input, 0},
           {DNNL_ARG_DST, Side::input, 1},
           {DNNL_ARG_DIFF_SRC, Side::output, 0}}};
}

Recipe binary_recipe(const Kernel& kernel, const Descs& descs) {
  const bool adds = operation_of(kernel) == Operation::add;
  auto attributes = user_scratchpad();
  if (adds && attributes_as<AddAttributes>(kernel).relu) {
    dnnl::post_ops then;
    then.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    attributes.set_post_ops(then);
  }
  // oneDNN 2.6 computes a padded channel wrongly where a relu follows. Padding holds zeros, and zeros stay:
  // taken as elements it needs no care.
  const dnnl::binary::desc desc(adds ? dnnl::algorithm::binary_add : dnnl::algorithm::binary_mul,
                                with_padding(descs.inputs[0]), with_padding(descs.inputs[1]),
                                with_padding(descs.outputs[0]));
  return {
      dnnl::binary::primitive_desc(desc, attributes, engine()),
      {{DNNL_ARG_SRC_0, Side::input, 0}, {DNNL_ARG_SRC_1, Side::input, 1}, {DNNL_ARG_DST, Side::output, 0}}};
}

Recipe concat_recipe(const Kernel& kernel, const Descs& descs) {
  const auto axis = static_cast<int>(attributes_as<ConcatAttributes>(kernel).axis);
  Recipe recipe{
      dnnl::concat::primitive_desc(descs.outputs[0], axis, descs.inputs, engine(), user_scratchpad()),
      {{DNNL_ARG_DST, Side::output, 0}}};
  for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
    recipe.bindings.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), Side::input, i});
  }
  return recipe;
}

Recipe reorder_recipe(const Kernel&, const Descs& descs) {
  return {
      dnnl::reorder::primitive_desc(engine(), descs.inputs[0], engine(), descs.outputs[0], user_scratchpad()),
      {{DNNL_ARG_FROM, Side::input, 0}, {DNNL_ARG_TO, Side::output, 0}}};
}

}  // namespace terrace::cpu

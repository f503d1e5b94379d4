#include "kernels/cpu/recipe.hpp"

namespace terrace::cpu {
namespace {

using Side = Binding::Side;

constexpr auto kDirection = dnnl::rnn_direction::unidirectional_left2right;

dnnl::lstm_forward::primitive_desc forward_primitive(const Desc& x, const Desc& weights,
                                                     const Desc& recurrent, const Desc& bias, const Desc& y) {
  const Desc none;  // the state starts at zero and its end is not asked for
  return {
      {dnnl::prop_kind::forward_training, kDirection, x, none, none, weights, recurrent, bias, y, none, none},
      user_scratchpad(),
      engine()};
}

}  // namespace

Recipe lstm_recipe(const Kernel& kernel, const Descs& descs) {
  const auto& in = descs.inputs;
  const auto& out = descs.outputs;
  if (kernel.operation == Operation::lstm) {
    return {forward_primitive(in[0], in[1], in[2], in[3], out[0]),
            {{DNNL_ARG_SRC_LAYER, Side::input, 0},
             {DNNL_ARG_WEIGHTS_LAYER, Side::input, 1},
             {DNNL_ARG_WEIGHTS_ITER, Side::input, 2},
             {DNNL_ARG_BIAS, Side::input, 3},
             {DNNL_ARG_DST_LAYER, Side::output, 0},
             {DNNL_ARG_WORKSPACE, Side::output, 1}}};
  }
  // Inputs: x, three weights, y, dy, what forward left; outputs: gradients of x and the weights.
  const Desc none;
  const auto hint = forward_primitive(in[0], any(in[1].dims()), any(in[2].dims()), in[3], in[4]);
  const dnnl::lstm_backward::desc desc(dnnl::prop_kind::backward, kDirection, in[0], none, none, in[1], in[2],
                                       in[3], in[4], none, none, out[0], none, none, out[1], out[2], out[3],
                                       in[5], none, none);
  return {dnnl::lstm_backward::primitive_desc(desc, user_scratchpad(), engine(), hint),
          {{DNNL_ARG_SRC_LAYER, Side::input, 0},
           {DNNL_ARG_WEIGHTS_LAYER, Side::input, 1},
           {DNNL_ARG_WEIGHTS_ITER, Side::input, 2},
           {DNNL_ARG_BIAS, Side::input, 3},
           {DNNL_ARG_DST_LAYER, Side::input, 4},
           {DNNL_ARG_DIFF_DST_LAYER, Side::input, 5},
           {DNNL_ARG_WORKSPACE, Side::input, 6},
           {DNNL_ARG_DIFF_SRC_LAYER, Side::output, 0},
           {DNNL_ARG_DIFF_WEIGHTS_LAYER, Side::output, 1},
           {DNNL_ARG_DIFF_WEIGHTS_ITER, Side::output, 2},
           {DNNL_ARG_DIFF_BIAS, Side::output, 3}}};
}

}  // namespace terrace::cpu

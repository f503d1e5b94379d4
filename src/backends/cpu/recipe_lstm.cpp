#include "backends/cpu/recipe.hpp"

#include "terrace/operation.hpp"

namespace terrace::cpu {
namespace {

using Side = Binding::Side;

constexpr auto kDirection = dnnl::rnn_direction::unidirectional_left2right;

/// [layers, directions, batch, hidden]
Desc state_of(const Desc& y) { return row_major(Dims{1, 1, y.dims()[1], y.dims()[2]}); }

/// The state starts at zero. oneDNN can be told so by leaving it out, but its version 2.6 then multiplies the
/// gradients of the recurrent weights by the state after each step instead of the one before it.
dnnl::lstm_forward::primitive_desc forward_primitive(const Desc& x, const Desc& weights,
                                                     const Desc& recurrent, const Desc& bias, const Desc& y) {
  const Desc none;  // the end of the state is not asked for
  const Desc state = state_of(y);
  return {{dnnl::prop_kind::forward_training, kDirection, x, state, state, weights, recurrent, bias, y, none,
           none},
          user_scratchpad(),
          engine()};
}

}  // namespace

Recipe lstm_recipe(const Kernel& kernel, const Descs& descs) {
  const auto& in = descs.inputs;
  const auto& out = descs.outputs;
  if (operation_of(kernel) == Operation::lstm) {
    return {forward_primitive(in[0], in[1], in[2], in[3], out[0]),
            {{DNNL_ARG_SRC_LAYER, Side::input, 0},
             {DNNL_ARG_WEIGHTS_LAYER, Side::input, 1},
             {DNNL_ARG_WEIGHTS_ITER, Side::input, 2},
             {DNNL_ARG_BIAS, Side::input, 3},
             {DNNL_ARG_DST_LAYER, Side::output, 0},
             {DNNL_ARG_WORKSPACE, Side::output, 1}},
            {{DNNL_ARG_SRC_ITER, state_of(out[0])}, {DNNL_ARG_SRC_ITER_C, state_of(out[0])}}};
  }
  // Inputs: x, three weights, y, dy, what forward left; outputs: gradients of x and the weights.
  const Desc none;
  const auto hint = forward_primitive(in[0], any(in[1].dims()), any(in[2].dims()), in[3], in[4]);
  const Desc state = state_of(in[4]);
  const dnnl::lstm_backward::desc desc(dnnl::prop_kind::backward, kDirection, in[0], state, state, in[1],
                                       in[2], in[3], in[4], none, none, out[0], state, state, out[1], out[2],
                                       out[3], in[5], none, none);
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
           {DNNL_ARG_DIFF_BIAS, Side::output, 3}},
          {{DNNL_ARG_SRC_ITER, state},
           {DNNL_ARG_SRC_ITER_C, state},
           {DNNL_ARG_DIFF_SRC_ITER, state},
           {DNNL_ARG_DIFF_SRC_ITER_C, state}}};
}

}  // namespace terrace::cpu

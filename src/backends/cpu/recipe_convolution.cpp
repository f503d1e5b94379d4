// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "backends/cpu/recipe.hpp"
#include "terrace/operation.hpp"

namespace terrace::cpu {
namespace {

using Side = Binding::Side;

/// A window as oneDNN writes it: dilation counted from zero.
struct Slide {
  Dims strides, dilates, padding;
};

Slide slide_of(const Window& window) {
  return {{window.stride[0], window.stride[1]},
          {window.dilation[0] - 1, window.dilation[1] - 1},
          {window.padding[0], window.padding[1]}};
}

/// Convolution and its transpose have the same shape in oneDNN: a forward, a data and a weights primitive.
template <class Forward, class Data, class Weights>
class Family {
 public:
  Family(const Kernel& kernel, dnnl::algorithm algorithm)
      : kernel_(kernel), slide_(slide_of(attributes_as<Window>(kernel))), algorithm_(algorithm) {}

  Recipe forward(const Descs& descs) const {
    const bool bias = kernel_.inputs.size() > 2;
    Recipe recipe{forward_primitive(descs.inputs[0], descs.inputs[1], bias ? &descs.inputs[2] : nullptr,
                                    descs.outputs[0]),
                  {{DNNL_ARG_SRC, Side::input, 0},
                   {DNNL_ARG_WEIGHTS, Side::input, 1},
                   {DNNL_ARG_DST, Side::output, 0}}};
    if (bias) recipe.bindings.push_back({DNNL_ARG_BIAS, Side::input, 2});
    return recipe;
  }

  /// (dy, w) -> dx
  Recipe data(const Descs& descs) const {
    const Desc &dy = descs.inputs[0], &weights = descs.inputs[1], &dx = descs.outputs[0];
    const typename Data::desc desc(algorithm_, dx, weights, dy, slide_.strides, slide_.dilates,
                                   slide_.padding, slide_.padding);
    return {typename Data::primitive_desc(desc, user_scratchpad(), engine(),
                                          forward_primitive(dx, weights, nullptr, dy)),
            {{DNNL_ARG_DIFF_DST, Side::input, 0},
             {DNNL_ARG_WEIGHTS, Side::input, 1},
             {DNNL_ARG_DIFF_SRC, Side::output, 0}}};
  }

  /// (x, dy) -> dw [, db]
  Recipe weights(const Descs& descs) const {
    const Desc &x = descs.inputs[0], &dy = descs.inputs[1], &dw = descs.outputs[0];
    const bool bias = kernel_.outputs.size() > 1;
    const auto hint = forward_primitive(x, dw, bias ? &descs.outputs[1] : nullptr, dy);
    const auto& s = slide_;
    const auto desc =
        bias ? typename Weights::desc(algorithm_, x, dw, descs.outputs[1], dy, s.strides, s.dilates,
                                      s.padding, s.padding)
             : typename Weights::desc(algorithm_, x, dw, dy, s.strides, s.dilates, s.padding, s.padding);
    Recipe recipe{typename Weights::primitive_desc(desc, user_scratchpad(), engine(), hint),
                  {{DNNL_ARG_SRC, Side::input, 0},
                   {DNNL_ARG_DIFF_DST, Side::input, 1},
                   {DNNL_ARG_DIFF_WEIGHTS, Side::output, 0}}};
    if (bias) recipe.bindings.push_back({DNNL_ARG_DIFF_BIAS, Side::output, 1});
    return recipe;
  }

 private:
  typename Forward::primitive_desc forward_primitive(const Desc& x, const Desc& weights, const Desc* bias,
                                                     const Desc& y) const {
    const auto kind = dnnl::prop_kind::forward_training;
    const auto& s = slide_;
    const auto desc = bias != nullptr ? typename Forward::desc(kind, algorithm_, x, weights, *bias, y,
                                                               s.strides, s.dilates, s.padding, s.padding)
                                      : typename Forward::desc(kind, algorithm_, x, weights, y, s.strides,
                                                               s.dilates, s.padding, s.padding);
    return {desc, user_scratchpad(), engine()};
  }

  const Kernel& kernel_;
  Slide slide_;
  dnnl::algorithm algorithm_;
};

Recipe convolution(const Kernel& kernel, const Descs& descs, dnnl::algorithm algorithm) {
  const Family<dnnl::convolution_forward, dnnl::convolution_backward_data, dnnl::convolution_backward_weights>
      family(kernel, algorithm);
  if (operation_of(kernel) == Operation::conv2d) return family.forward(descs);
  return operation_of(kernel) == Operation::conv2d_backward_data ? family.data(descs) : family.weights(descs);
}

/// Winograd's F(4x4, 3x3) needs a quarter of the multiplications and is 1.2 to 4 times as fast as the direct
/// kernels wherever it exists (docs/results/engine.md). The choice depends on the shape alone, never on a
/// measurement, so that every run computes the same bits.
bool suits_winograd(const Kernel& kernel) {
  const auto& window = attributes_as<Window>(kernel);
  const auto all = [](const auto& pair, std::int64_t value) { return pair[0] == value && pair[1] == value; };
  if (!all(window.kernel, 3) || !all(window.stride, 1) || !all(window.dilation, 1)) return false;
  // It works on whole vectors of channels: narrow layers would mostly multiply zeros.
  const auto whole = [](const Operand& image) { return image.shape[1] % 16 == 0; };
  const bool computes_weights = operation_of(kernel) == Operation::conv2d_backward_weights;
  return window.groups == 1 && whole(kernel.inputs[0]) &&
         whole(computes_weights ? kernel.inputs[1] : kernel.outputs[0]);
}

}  // namespace

Recipe convolution_recipe(const Kernel& kernel, const Descs& descs) {
  if (suits_winograd(kernel)) {
    // Which layouts and paddings it takes is for oneDNN to say; it says so by refusing.
    try {
      return convolution(kernel, descs, dnnl::algorithm::convolution_winograd);
    } catch (const dnnl::error& refusal) {
      if (refusal.status != dnnl_unimplemented) throw;
    }
  }
  return convolution(kernel, descs, dnnl::algorithm::convolution_direct);
}

std::optional<Recipe> direct_convolution(const Kernel& kernel, const Descs& descs) {
  const Operation operation = operation_of(kernel);
  if (operation != Operation::conv2d && operation != Operation::conv2d_backward_data &&
      operation != Operation::conv2d_backward_weights)
    return std::nullopt;
  const Recipe usual = convolution_recipe(kernel, descs);
  if (std::string_view(usual.primitive.impl_info_str()).find("wino") == std::string_view::npos)
    return std::nullopt;
  try {
    Recipe direct = convolution(kernel, descs, dnnl::algorithm::convolution_direct);
    if (std::string_view(direct.primitive.impl_info_str()).find("ref") != std::string_view::npos)
      return std::nullopt;
    return direct;
  } catch (const dnnl::error& refusal) {
    if (refusal.status != dnnl_unimplemented) throw;
    return std::nullopt;
  }
}

Recipe transposed_recipe(const Kernel& kernel, const Descs& descs) {
  const Family<dnnl::deconvolution_forward, dnnl::deconvolution_backward_data,
               dnnl::deconvolution_backward_weights>
      family(kernel, dnnl::algorithm::deconvolution_direct);
  if (operation_of(kernel) == Operation::conv_transpose2d) return family.forward(descs);
  return operation_of(kernel) == Operation::conv_transpose2d_backward_data ? family.data(descs)
                                                                           : family.weights(descs);
}

}  // namespace terrace::cpu

// The forward half of a graph in the words of tests/torch/graph.py.
//
// Dropout becomes a product with a mask, because its random numbers are ours: the mask of kernel K is a
// tensor named `mask of K`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "terrace/graph.hpp"
#include "terrace/operation.hpp"

namespace terrace::agreement {

using Json = nlohmann::json;

inline Json extents(const Shape& shape) { return std::vector<std::int64_t>(shape.begin(), shape.end()); }

inline std::string mask_name(const Kernel& kernel) { return "mask of " + kernel.name; }

struct AttributesInTorch {
  const Kernel& kernel;

  Json operator()(std::monostate) const {
    if (operation_of(kernel) == Operation::lstm) return {{"hidden", kernel.inputs[2].shape[1]}};
    return Json::object();
  }
  Json operator()(const Window& window) const {
    Json json{{"kernel", window.kernel}, {"stride", window.stride}, {"padding", window.padding}};
    if (operation_of(kernel) == Operation::max_pool2d || operation_of(kernel) == Operation::avg_pool2d) {
      json["include_padding"] = window.include_padding;
    } else {
      json["dilation"] = window.dilation;
      json["groups"] = window.groups;
    }
    return json;
  }
  Json operator()(const NormAttributes& norm) const {
    if (operation_of(kernel) == Operation::layer_norm) return {{"epsilon", norm.epsilon}};
    return {{"epsilon", norm.epsilon}, {"momentum", norm.momentum}, {"relu", norm.relu}};
  }
  Json operator()(const MatmulAttributes& matmul) const {
    return {
        {"transpose_a", matmul.transpose_a}, {"transpose_b", matmul.transpose_b}, {"scale", matmul.scale}};
  }
  Json operator()(const SoftmaxAttributes& softmax) const {
    return {{"scale", softmax.scale}, {"causal", softmax.causal}};
  }
  Json operator()(const SlopeAttributes& leaky) const { return {{"slope", leaky.slope}}; }
  Json operator()(const GeluAttributes& gelu) const {
    return {{"approximate", gelu.tanh_approximation ? "tanh" : "none"}};
  }
  Json operator()(const AddAttributes& add) const { return {{"relu", add.relu}}; }
  Json operator()(const ConcatAttributes& concat) const { return {{"axis", concat.axis}}; }
  Json operator()(const HeadsAttributes& heads) const {
    return {{"parts", heads.parts}, {"heads", heads.heads}};
  }
  Json operator()(const EmbeddingAttributes&) const { return Json::object(); }  // of whole tables
  Json operator()(const DropoutAttributes&) const { return Json::object(); }
  Json operator()(const LossAttributes& loss) const {
    if (operation_of(kernel) == Operation::cross_entropy) return Json::object();
    return {{"target", loss.target}};
  }
  Json operator()(const OptimizerAttributes&) const { return Json::object(); }
};

/// What PyTorch makes too: not what forward leaves for backward.
inline Json outputs_in_torch(const Graph& graph, const Kernel& kernel) {
  std::vector<std::size_t> kept{0};
  if (operation_of(kernel) == Operation::batch_norm) kept = {0, 3, 4};
  if (operation_of(kernel) == Operation::split_heads) {
    for (std::size_t i = 1; i < kernel.outputs.size(); ++i) kept.push_back(i);
  }
  Json names = Json::array();
  for (const std::size_t i : kept) names.push_back(graph[kernel.outputs[i].tensor].name);
  return names;
}

inline Json step_in_torch(const Graph& graph, const Kernel& kernel) {
  Json inputs = Json::array();
  for (const Operand& input : kernel.inputs)
    inputs.push_back({graph[input.tensor].name, extents(input.shape)});
  const bool drops = operation_of(kernel) == Operation::dropout;
  if (drops) inputs.push_back({mask_name(kernel), extents(kernel.inputs[0].shape)});
  return {{"op", drops ? "mul" : kernel.operation},
          {"attributes", std::visit(AttributesInTorch{kernel}, attributes_of(kernel))},
          {"inputs", std::move(inputs)},
          {"outputs", outputs_in_torch(graph, kernel)}};
}

inline Json steps_in_torch(const Graph& graph) {
  Json steps = Json::array();
  for (const Kernel& kernel : graph.kernels) {
    if (kernel.phase == Phase::forward) steps.push_back(step_in_torch(graph, kernel));
  }
  return steps;
}

/// Losses and their weights in the sum that is differentiated.
inline Json losses_in_torch(const Graph& graph) {
  Json losses = Json::object();
  for (const Kernel& kernel : graph.kernels) {
    const bool ends = operation_of(kernel) == Operation::cross_entropy ||
                      operation_of(kernel) == Operation::binary_cross_entropy;
    if (ends) losses[graph[kernel.outputs[0].tensor].name] = attributes_as<LossAttributes>(kernel).weight;
  }
  return losses;
}

}  // namespace terrace::agreement

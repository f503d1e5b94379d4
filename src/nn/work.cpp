#include "nn/work.hpp"

#include <algorithm>

#include "nn/operation_table.hpp"

namespace terrace {
namespace {

double elements(const Operand& operand) { return static_cast<double>(operand.shape.elements()); }

/// Every element of the large image meets one filter: its channels and window, shared out over the groups.
/// Transposed convolutions exchange the two images, backward passes exchange which of the three operands is
/// computed.
double convolution(const Operand& image, const Operand& filter) {
  return 2 * elements(image) * static_cast<double>(filter.shape.elements_from(1));
}

double matmul(const Kernel& kernel) {
  const auto& a = kernel.inputs[0].shape;
  const bool transposed = attributes_as<MatmulAttributes>(kernel).transpose_a;
  return 2 * elements(kernel.outputs[0]) * static_cast<double>(a[a.rank() - (transposed ? 2 : 1)]);
}

double lstm(const Kernel& kernel) {
  const auto& x = kernel.inputs[0].shape;
  const double cells = static_cast<double>(x[0] * x[1]);
  return 2 * cells * (elements(kernel.inputs[1]) + elements(kernel.inputs[2]));
}

double flops(const Kernel& kernel) {
  const auto& in = kernel.inputs;
  const auto& out = kernel.outputs;
  switch (operation_of(kernel)) {
    case Operation::conv2d:
      return convolution(out[0], in[1]);
    case Operation::conv2d_backward_data:
      return convolution(in[0], in[1]);
    case Operation::conv2d_backward_weights:
      return convolution(in[1], out[0]);
    case Operation::conv_transpose2d:
      return convolution(in[0], in[1]);
    case Operation::conv_transpose2d_backward_data:
      return convolution(out[0], in[1]);
    case Operation::conv_transpose2d_backward_weights:
      return convolution(in[0], out[0]);
    case Operation::linear:
    case Operation::linear_backward_data:
      return 2 * elements(in[0]) * elements(out[0]) / std::max(1.0, static_cast<double>(in[0].shape[0]));
    case Operation::linear_backward_weights:
      return 2 * elements(out[0]) * static_cast<double>(in[0].shape[0]);
    case Operation::matmul:
      return matmul(kernel);
    case Operation::lstm:
      return lstm(kernel);
    case Operation::lstm_backward:
      return 2 * lstm(kernel);
    case Operation::max_pool2d:
    case Operation::avg_pool2d: {
      const auto& window = attributes_as<Window>(kernel);
      return elements(out[0]) * static_cast<double>(window.kernel[0] * window.kernel[1]);
    }
    case Operation::custom:
      return kernel.flops;
    default:
      return in.empty() ? 0 : info_of(operation_of(kernel)).flops * elements(in[0]);
  }
}

}  // namespace

void count_work(const Graph& graph, Kernel& kernel) {
  for (auto* operands : {&kernel.inputs, &kernel.outputs}) {
    for (Operand& operand : *operands) operand.touched = graph[operand.tensor].bytes;
  }
  // Only the rows that are looked up are read.
  if (operation_of(kernel) == Operation::embedding) {
    kernel.inputs[0].touched = std::min(kernel.inputs[0].touched, kernel.outputs[0].touched);
  }
  kernel.flops = flops(kernel);
}

}  // namespace terrace

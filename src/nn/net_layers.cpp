// SPDX-License-Identifier: Apache-2.0
// The operations of Net that have weights.
#include <fmt/format.h>

#include <cmath>

#include "terrace/net.hpp"

namespace terrace {
namespace {

Window window_of(const Net::Conv& options) {
  return {options.kernel, options.stride, options.padding, options.dilation, options.groups};
}

/// Returns what PyTorch's layers start with: uniform within 1 / sqrt(inputs of one output).
Initial fan_in(std::int64_t inputs) {
  const float bound = inputs > 0 ? 1 / std::sqrt(static_cast<float>(inputs)) : 0;
  return {Initial::Kind::uniform, -bound, bound};
}

constexpr Initial kZeros{Initial::Kind::constant, 0, 0};
constexpr Initial kOnes{Initial::Kind::constant, 1, 0};

std::int64_t reach(const Window& window, std::size_t axis) {
  return window.dilation[axis] * (window.kernel[axis] - 1) + 1;
}

std::int64_t slid(std::int64_t extent, const Window& window, std::size_t axis) {
  if (extent + 2 * window.padding[axis] < reach(window, axis)) return 0;
  return (extent + 2 * window.padding[axis] - reach(window, axis)) / window.stride[axis] + 1;
}

std::int64_t unslid(std::int64_t extent, const Window& window, std::size_t axis) {
  return (extent - 1) * window.stride[axis] - 2 * window.padding[axis] + reach(window, axis);
}

bool is_positive(const Window& window) {
  const auto least = [](const Window::Pair& pair) { return std::min(pair[0], pair[1]); };
  return least(window.kernel) > 0 && least(window.stride) > 0 && least(window.dilation) > 0 &&
         least(window.padding) >= 0 && window.groups > 0;
}

}  // namespace

Value Net::conv2d(std::string_view name, Value x, std::int64_t channels, const Conv& options) {
  return convolution(Operation::conv2d, name, x, channels, options);
}

Value Net::conv_transpose2d(std::string_view name, Value x, std::int64_t channels, const Conv& options) {
  return convolution(Operation::conv_transpose2d, name, x, channels, options);
}

Value Net::convolution(Operation operation, std::string_view name, Value x, std::int64_t channels,
                       const Conv& options) {
  const auto scoped = scope(name);
  begin_layer("convolution");
  const Window window = window_of(options);
  require(is_positive(window), "kernel, stride, dilation and groups must be above zero, padding not below");
  require(x.shape.rank() == 4, fmt::format("{} wants [batch, channels, height, width], not {}",
                                           to_string(operation), to_string(x.shape)));
  require(x.shape[1] % options.groups == 0 && channels % options.groups == 0,
          fmt::format("{} groups do not divide {} input and {} output channels", options.groups, x.shape[1],
                      channels));
  const bool transposed = operation == Operation::conv_transpose2d;
  const auto extent = transposed ? unslid : slid;
  const std::int64_t height = extent(x.shape[2], window, 0), width = extent(x.shape[3], window, 1);
  require(channels > 0 && height > 0 && width > 0,
          fmt::format("a window of {}x{} leaves nothing of an image {}", options.kernel[0], options.kernel[1],
                      to_string(x.shape)));
  const Shape weight{transposed ? x.shape[1] : channels,
                     (transposed ? channels : x.shape[1]) / options.groups, options.kernel[0],
                     options.kernel[1]};
  const Initial initial = fan_in(weight.elements_from(1));
  Kernel kernel;
  kernel.operation = to_string(operation);
  kernel.attributes = to_attributes(window);
  kernel.inputs = {operand(x), operand(parameter("weight", weight, options.initial.value_or(initial)))};
  if (options.bias) {
    const Initial bias = options.initial ? kZeros : initial;
    kernel.inputs.push_back(operand(parameter("bias", {channels}, bias)));
  }
  return make(std::move(kernel), {x.shape[0], channels, height, width});
}

Value Net::linear(std::string_view name, Value x, std::int64_t features, const Linear& options) {
  require(x.shape.rank() >= 2 && features > 0,
          fmt::format("linear {} wants [rows, features], not {}", name, to_string(x.shape)));
  const auto scoped = scope(name);
  const Initial initial = fan_in(x.shape.back());
  const Value weight = parameter("weight", {features, x.shape.back()}, options.initial.value_or(initial));
  std::optional<Value> bias;
  if (options.bias) bias = parameter("bias", {features}, options.initial ? kZeros : initial);
  return linear_with(x, weight, bias);
}

Value Net::linear_with(Value x, Value weight, std::optional<Value> bias) {
  begin_layer("linear");
  require(x.shape.rank() >= 2 && weight.shape.rank() == 2 && x.shape.back() == weight.shape[1],
          fmt::format("a linear weight {} does not fit {}", to_string(weight.shape), to_string(x.shape)));
  const std::int64_t features = weight.shape[0];
  Shape out = x.shape;
  out[out.rank() - 1] = features;
  const std::int64_t rows = x.shape.elements() / std::max<std::int64_t>(x.shape.back(), 1);
  Kernel kernel;
  kernel.operation = to_string(Operation::linear);
  kernel.inputs = {operand(reshape(x, {rows, x.shape.back()})), operand(weight)};
  if (bias) kernel.inputs.push_back(operand(*bias));
  return reshape(make(std::move(kernel), {rows, features}), out);
}

Value Net::batch_norm(std::string_view name, Value x, const NormAttributes& options) {
  require(x.shape.rank() == 4, fmt::format("batch_norm {} wants an image, not {}", name, to_string(x.shape)));
  const auto scoped = scope(name);
  const Shape channels{x.shape[1]};
  const Value gamma = parameter("weight", channels, kOnes), beta = parameter("bias", channels, kZeros);
  const Value mean{persistent("running_mean", channels, TensorKind::statistics, kZeros), channels};
  const Value variance{persistent("running_var", channels, TensorKind::statistics, kOnes), channels};
  Kernel kernel;
  kernel.attributes = to_attributes(options);
  kernel.inputs = {operand(x), operand(gamma), operand(beta), operand(mean), operand(variance)};
  if (mode_ == Mode::inference) {
    kernel.operation = to_string(Operation::batch_norm_inference);
    kernel.in_place = {{0, 0}};
    return make(std::move(kernel), x.shape);
  }
  kernel.operation = to_string(Operation::batch_norm);
  const std::string stem = full_name("batch");
  for (const char* part : {"mean", "variance"}) {
    const TensorId id =
        new_tensor(unique_name(fmt::format("{}_{}", stem, part)), channels, TensorKind::statistics);
    kernel.outputs.push_back(operand({id, channels}));
  }
  kernel.outputs.push_back(operand(mean));
  kernel.outputs.push_back(operand(variance));
  if (options.relu) {
    const Shape mask{(x.shape.elements() + 7) / 8};
    const TensorId id =
        new_tensor(unique_name(full_name("relu_mask")), mask, TensorKind::activation, DataType::u8);
    kernel.outputs.push_back(operand({id, mask}));
  }
  return make(std::move(kernel), x.shape);
}

Value Net::layer_norm(std::string_view name, Value x, float epsilon) {
  require(x.shape.rank() >= 2,
          fmt::format("layer_norm {} wants [rows, features], not {}", name, to_string(x.shape)));
  const auto scoped = scope(name);
  const Shape features{x.shape.back()};
  const Shape rows{x.shape.elements() / std::max<std::int64_t>(x.shape.back(), 1)};
  const Value gamma = parameter("weight", features, kOnes), beta = parameter("bias", features, kZeros);
  Kernel kernel;
  kernel.operation = to_string(Operation::layer_norm);
  kernel.attributes = to_attributes(NormAttributes{epsilon, 0, false});
  const Shape table{rows[0], features[0]};
  kernel.inputs = {operand(reshape(x, table)), operand(gamma), operand(beta)};
  for (const char* part : {"row_mean", "row_deviation"}) {
    kernel.outputs.push_back(
        operand({new_tensor(unique_name(full_name(part)), rows, TensorKind::statistics), rows}));
  }
  return reshape(make(std::move(kernel), table), x.shape);
}

Value Net::embedding(std::string_view name, Value indices, std::int64_t rows, std::int64_t features,
                     Initial initial) {
  const auto scoped = scope(name);
  begin_layer("embedding");
  require(graph_[indices.tensor].type == DataType::i32, "the indices of an embedding are i32");
  require(rows > 0 && features > 0, "an embedding needs rows and features");
  Shape out = indices.shape;
  out.push_back(features);
  Kernel kernel;
  kernel.operation = to_string(Operation::embedding);
  kernel.attributes = to_attributes(EmbeddingAttributes{});
  const Shape flat{indices.shape.elements()};
  kernel.inputs = {operand(parameter("weight", {rows, features}, initial)), operand(reshape(indices, flat))};
  return reshape(make(std::move(kernel), {flat[0], features}), out);
}

Value Net::lstm(std::string_view name, Value x, std::int64_t hidden) {
  const auto scoped = scope(name);
  begin_layer("lstm");
  require(x.shape.rank() == 3 && hidden > 0,
          fmt::format("lstm wants [time, batch, features], not {}", to_string(x.shape)));
  const Initial initial = fan_in(hidden);
  Kernel kernel;
  kernel.operation = to_string(Operation::lstm);
  kernel.inputs = {operand(x), operand(parameter("weight_ih", {4 * hidden, x.shape[2]}, initial)),
                   operand(parameter("weight_hh", {4 * hidden, hidden}, initial)),
                   operand(parameter("bias", {4 * hidden}, initial))};
  // Gates, cell and state of every time step; the kernels' library says how many bytes it takes in truth.
  const Shape saved{x.shape[0], x.shape[1], 6 * hidden};
  kernel.outputs = {
      operand({new_tensor(unique_name(full_name("gates")), saved, TensorKind::activation), saved})};
  return make(std::move(kernel), {x.shape[0], x.shape[1], hidden});
}

}  // namespace terrace

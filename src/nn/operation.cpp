#include "terrace/operation.hpp"

#include <unordered_map>

namespace terrace {
namespace {

constexpr std::array<std::string_view, kOperations> kNames = {
    "custom",
    "reorder",
    "conv2d",
    "conv2d_backward_data",
    "conv2d_backward_weights",
    "conv_transpose2d",
    "conv_transpose2d_backward_data",
    "conv_transpose2d_backward_weights",
    "linear",
    "linear_backward_data",
    "linear_backward_weights",
    "matmul",
    "max_pool2d",
    "max_pool2d_backward",
    "avg_pool2d",
    "avg_pool2d_backward",
    "batch_norm",
    "batch_norm_backward",
    "batch_norm_inference",
    "layer_norm",
    "layer_norm_backward",
    "softmax",
    "softmax_backward",
    "relu",
    "relu_backward",
    "leaky_relu",
    "leaky_relu_backward",
    "gelu",
    "gelu_backward",
    "tanh",
    "tanh_backward",
    "sigmoid",
    "sigmoid_backward",
    "add",
    "mul",
    "concat",
    "concat_backward",
    "split_heads",
    "merge_heads",
    "embedding",
    "embedding_backward",
    "dropout",
    "dropout_backward",
    "lstm",
    "lstm_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "binary_cross_entropy",
    "binary_cross_entropy_backward",
    "sgd",
    "adam",
};

}  // namespace

std::string_view to_string(Operation operation) { return kNames[static_cast<std::size_t>(operation)]; }

std::optional<Operation> parse_operation(std::string_view name) {
  static const auto operations = [] {
    std::unordered_map<std::string_view, Operation> by_name;
    for (std::size_t i = 0; i < kNames.size(); ++i) by_name.emplace(kNames[i], static_cast<Operation>(i));
    return by_name;
  }();
  const auto found = operations.find(name);
  return found == operations.end() ? std::nullopt : std::optional(found->second);
}

Operation operation_of(const Kernel& kernel) {
  return parse_operation(kernel.operation).value_or(Operation::custom);
}

}  // namespace terrace

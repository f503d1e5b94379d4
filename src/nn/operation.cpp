// The one table of operations: a row for each, in the order of the enum. What is not in a row is how
// gradients are made (differentiate.cpp), the work of products (work.cpp) and how a backend computes it.
#include "terrace/operation.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "nn/operation_row.hpp"
#include "nn/signature.hpp"

namespace terrace {
namespace {

constexpr std::array<OperationRow, kOperations> kTable = {{
    {"custom", {"any*", "any*"}, {}, 1},
    {"reorder", {"x", "y"}, {}, 0},
    {"conv2d", {"x weight bias?", "y"}, Window{}, 1},
    {"conv2d_backward_data", {"dy weight", "dx"}, Window{}, 1},
    {"conv2d_backward_weights", {"x dy", "dweight dbias?"}, Window{}, 1},
    {"conv_transpose2d", {"x weight bias?", "y"}, Window{}, 1},
    {"conv_transpose2d_backward_data", {"dy weight", "dx"}, Window{}, 1},
    {"conv_transpose2d_backward_weights", {"x dy", "dweight dbias?"}, Window{}, 1},
    {"linear", {"x weight bias?", "y"}, {}, 1},
    {"linear_backward_data", {"dy weight", "dx"}, {}, 1},
    {"linear_backward_weights", {"x dy", "dweight dbias?"}, {}, 1},
    {"matmul", {"a b", "c"}, MatmulAttributes{}, 1},
    {"max_pool2d", {"x", "y winners?"}, Window{}, 1},
    {"max_pool2d_backward", {"dy winners", "dx"}, Window{}, 1},
    {"avg_pool2d", {"x", "y"}, Window{}, 1},
    {"avg_pool2d_backward", {"dy", "dx"}, Window{}, 1},
    {"batch_norm",
     {"x weight bias running_mean running_var", "y mean variance running_mean running_var relu_mask?"},
     NormAttributes{},
     6},
    {"batch_norm_backward",
     {"dy x mean variance weight relu_mask?", "dx dweight dbias"},
     NormAttributes{},
     10},
    {"batch_norm_inference", {"x weight bias running_mean running_var", "y"}, NormAttributes{}, 1},
    {"layer_norm", {"x weight bias", "y mean deviation"}, NormAttributes{}, 6},
    {"layer_norm_backward", {"dy x mean deviation weight", "dx dweight dbias"}, NormAttributes{}, 10},
    {"softmax", {"x", "y"}, SoftmaxAttributes{}, 4},
    {"softmax_backward", {"dy y", "dx"}, SoftmaxAttributes{}, 4},
    {"relu", {"x", "y"}, {}, 1},
    {"relu_backward", {"dy y", "dx"}, {}, 1},
    {"leaky_relu", {"x", "y"}, SlopeAttributes{}, 1},
    {"leaky_relu_backward", {"dy y", "dx"}, SlopeAttributes{}, 1},
    {"gelu", {"x", "y"}, GeluAttributes{}, 6},
    {"gelu_backward", {"dy x", "dx"}, GeluAttributes{}, 10},
    {"tanh", {"x", "y"}, {}, 1},
    {"tanh_backward", {"dy y", "dx"}, {}, 1},
    {"sigmoid", {"x", "y"}, {}, 1},
    {"sigmoid_backward", {"dy y", "dx"}, {}, 1},
    {"add", {"a b", "y"}, AddAttributes{}, 1},
    {"mul", {"a b", "y"}, {}, 1},
    {"concat", {"x x*", "y"}, ConcatAttributes{}, 0},
    {"concat_backward", {"dy", "dx dx*"}, ConcatAttributes{}, 0},
    {"split_heads", {"x", "y y*"}, HeadsAttributes{}, 0},
    {"merge_heads", {"x x*", "y"}, HeadsAttributes{}, 0},
    {"embedding", {"weight indices y?", "y"}, EmbeddingAttributes{}, 0},
    {"embedding_backward", {"dy indices", "dweight"}, EmbeddingAttributes{}, 1},
    {"dropout", {"x", "y"}, DropoutAttributes{}, 1},
    {"dropout_backward", {"dy", "dx"}, DropoutAttributes{}, 1},
    {"lstm", {"x weight_ih weight_hh bias", "y gates"}, {}, 1},
    {"lstm_backward", {"x weight_ih weight_hh bias y dy gates", "dx dweight_ih dweight_hh dbias"}, {}, 1},
    {"cross_entropy", {"logits labels", "loss log_sum"}, LossAttributes{}, 4},
    {"cross_entropy_backward", {"logits labels log_sum", "dlogits"}, LossAttributes{}, 4},
    {"binary_cross_entropy", {"logits", "loss"}, LossAttributes{}, 1},
    {"binary_cross_entropy_backward", {"logits", "dlogits"}, LossAttributes{}, 1},
    {"sgd", {"weight gradient momentum?", "weight momentum?"}, OptimizerAttributes{}, 6},
    {"adam",
     {"weight gradient first_moment second_moment", "weight first_moment second_moment"},
     OptimizerAttributes{},
     10},
}};

}  // namespace

const OperationRow& row_of(Operation operation) { return kTable[static_cast<std::size_t>(operation)]; }

std::string_view to_string(Operation operation) { return row_of(operation).name; }

std::optional<Operation> parse_operation(std::string_view name) {
  static const auto operations = [] {
    std::unordered_map<std::string_view, Operation> by_name;
    for (std::size_t i = 0; i < kTable.size(); ++i)
      by_name.emplace(kTable[i].name, static_cast<Operation>(i));
    return by_name;
  }();
  const auto found = operations.find(name);
  return found == operations.end() ? std::nullopt : std::optional(found->second);
}

Operation operation_of(const Kernel& kernel) {
  return parse_operation(kernel.operation).value_or(Operation::custom);
}

Signature signature_of(Operation operation) { return row_of(operation).operands; }

OperationAttributes default_attributes(Operation operation) { return row_of(operation).attributes; }

bool accepts(std::string_view side, std::size_t operands) {
  const auto names = static_cast<std::size_t>(std::count(side.begin(), side.end(), ' ')) + 1;
  const auto optional = static_cast<std::size_t>(std::count(side.begin(), side.end(), '?'));
  const bool repeats = side.ends_with('*');
  const std::size_t least = names - optional - (repeats ? 1 : 0);
  return operands >= least && (repeats || operands <= names);
}

}  // namespace terrace

#include "nn/signature.hpp"

#include <algorithm>

namespace terrace {

Signature signature_of(Operation operation) {
  switch (operation) {
    case Operation::custom:
      return {"any*", "any*"};
    case Operation::conv2d:
    case Operation::conv_transpose2d:
    case Operation::linear:
      return {"x weight bias?", "y"};
    case Operation::conv2d_backward_data:
    case Operation::conv_transpose2d_backward_data:
    case Operation::linear_backward_data:
      return {"dy weight", "dx"};
    case Operation::conv2d_backward_weights:
    case Operation::conv_transpose2d_backward_weights:
    case Operation::linear_backward_weights:
      return {"x dy", "dweight dbias?"};
    case Operation::matmul:
      return {"a b", "c"};
    case Operation::max_pool2d:
      return {"x", "y winners?"};
    case Operation::max_pool2d_backward:
      return {"dy winners", "dx"};
    case Operation::batch_norm:
      return {"x weight bias running_mean running_var",
              "y mean variance running_mean running_var relu_mask?"};
    case Operation::batch_norm_backward:
      return {"dy x mean variance weight relu_mask?", "dx dweight dbias"};
    case Operation::batch_norm_inference:
      return {"x weight bias running_mean running_var", "y"};
    case Operation::layer_norm:
      return {"x weight bias", "y mean deviation"};
    case Operation::layer_norm_backward:
      return {"dy x mean deviation weight", "dx dweight dbias"};
    case Operation::reorder:
    case Operation::avg_pool2d:
    case Operation::softmax:
    case Operation::relu:
    case Operation::leaky_relu:
    case Operation::gelu:
    case Operation::tanh:
    case Operation::sigmoid:
    case Operation::dropout:
      return {"x", "y"};
    case Operation::avg_pool2d_backward:
    case Operation::dropout_backward:
      return {"dy", "dx"};
    case Operation::softmax_backward:
    case Operation::relu_backward:
    case Operation::leaky_relu_backward:
    case Operation::tanh_backward:
    case Operation::sigmoid_backward:
      return {"dy y", "dx"};
    case Operation::gelu_backward:
      return {"dy x", "dx"};
    case Operation::add:
    case Operation::mul:
      return {"a b", "y"};
    case Operation::concat:
    case Operation::merge_heads:
      return {"x x*", "y"};
    case Operation::concat_backward:
      return {"dy", "dx dx*"};
    case Operation::split_heads:
      return {"x", "y y*"};
    case Operation::embedding:
      return {"weight indices y?", "y"};
    case Operation::embedding_backward:
      return {"dy indices", "dweight"};
    case Operation::lstm:
      return {"x weight_ih weight_hh bias", "y gates"};
    case Operation::lstm_backward:
      return {"x weight_ih weight_hh bias y dy gates", "dx dweight_ih dweight_hh dbias"};
    case Operation::cross_entropy:
      return {"logits labels", "loss log_sum"};
    case Operation::cross_entropy_backward:
      return {"logits labels log_sum", "dlogits"};
    case Operation::binary_cross_entropy:
      return {"logits", "loss"};
    case Operation::binary_cross_entropy_backward:
      return {"logits", "dlogits"};
    case Operation::sgd:
      return {"weight gradient momentum?", "weight momentum?"};
    case Operation::adam:
      return {"weight gradient first_moment second_moment", "weight first_moment second_moment"};
  }
  return {};
}

bool accepts(std::string_view side, std::size_t operands) {
  const auto names = static_cast<std::size_t>(std::count(side.begin(), side.end(), ' ')) + 1;
  const auto optional = static_cast<std::size_t>(std::count(side.begin(), side.end(), '?'));
  const bool repeats = side.ends_with('*');
  const std::size_t least = names - optional - (repeats ? 1 : 0);
  return operands >= least && (repeats || operands <= names);
}

}  // namespace terrace

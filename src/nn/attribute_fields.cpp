#include "nn/attribute_fields.hpp"

namespace terrace {

OperationAttributes default_attributes(Operation operation) {
  switch (operation) {
    case Operation::conv2d:
    case Operation::conv2d_backward_data:
    case Operation::conv2d_backward_weights:
    case Operation::conv_transpose2d:
    case Operation::conv_transpose2d_backward_data:
    case Operation::conv_transpose2d_backward_weights:
    case Operation::max_pool2d:
    case Operation::max_pool2d_backward:
    case Operation::avg_pool2d:
    case Operation::avg_pool2d_backward:
      return Window{};
    case Operation::batch_norm:
    case Operation::batch_norm_backward:
    case Operation::batch_norm_inference:
    case Operation::layer_norm:
    case Operation::layer_norm_backward:
      return NormAttributes{};
    case Operation::matmul:
      return MatmulAttributes{};
    case Operation::softmax:
    case Operation::softmax_backward:
      return SoftmaxAttributes{};
    case Operation::leaky_relu:
    case Operation::leaky_relu_backward:
      return SlopeAttributes{};
    case Operation::gelu:
    case Operation::gelu_backward:
      return GeluAttributes{};
    case Operation::add:
      return AddAttributes{};
    case Operation::concat:
    case Operation::concat_backward:
      return ConcatAttributes{};
    case Operation::split_heads:
    case Operation::merge_heads:
      return HeadsAttributes{};
    case Operation::embedding:
    case Operation::embedding_backward:
      return EmbeddingAttributes{};
    case Operation::dropout:
    case Operation::dropout_backward:
      return DropoutAttributes{};
    case Operation::cross_entropy:
    case Operation::cross_entropy_backward:
    case Operation::binary_cross_entropy:
    case Operation::binary_cross_entropy_backward:
      return LossAttributes{};
    case Operation::sgd:
    case Operation::adam:
      return OptimizerAttributes{};
    default:
      return std::monostate{};
  }
}

}  // namespace terrace

// The operations that oneDNN does not have, bound to a kernel's operands.
#include <array>

#include "backends/cpu/math/adam.hpp"
#include "backends/cpu/math/binary_cross_entropy.hpp"
#include "backends/cpu/math/cross_entropy.hpp"
#include "backends/cpu/math/dropout.hpp"
#include "backends/cpu/math/embedding.hpp"
#include "backends/cpu/math/gelu.hpp"
#include "backends/cpu/math/heads.hpp"
#include "backends/cpu/math/layer_norm.hpp"
#include "backends/cpu/math/sgd.hpp"
#include "backends/cpu/math/softmax.hpp"
#include "backends/cpu/onednn_kernel.hpp"
#include "terrace/operation.hpp"

namespace terrace::cpu {
namespace {

using Function = FunctionKernel::Function;

math::Rows rows_of(const Operand& operand) { return {operand.shape[0], operand.shape[1]}; }

/// Elements as stored: element-wise kernels also work on the padding of a layout, which holds zeros and stays
/// so.
std::int64_t stored_elements(const Graph& graph, const Operand& operand) {
  return static_cast<std::int64_t>(graph[operand.tensor].bytes.count / sizeof(float));
}

math::RandomKey key_of(const StepContext& context, std::uint32_t stream) {
  return {context.seed, static_cast<std::uint32_t>(context.step), stream};
}

Function sgd(const Graph& graph, const Kernel& kernel) {
  const auto& options = attributes_as<OptimizerAttributes>(kernel);
  const bool has_state = kernel.inputs.size() > 2;
  return [=, n = stored_elements(graph, kernel.inputs[0])](Operands at, const StepContext& context) {
    math::sgd(floats(at, 0), has_state ? floats(at, 2) : nullptr, floats(at, 1), n,
              {context.learning_rate, options.momentum, options.weight_decay});
  };
}

Function adam(const Graph& graph, const Kernel& kernel) {
  const auto& options = attributes_as<OptimizerAttributes>(kernel);
  return [=, n = stored_elements(graph, kernel.inputs[0])](Operands at, const StepContext& context) {
    math::adam(floats(at, 0), {floats(at, 2), floats(at, 3)}, floats(at, 1), n,
               static_cast<std::int64_t>(context.step) + 1,
               {context.learning_rate, options.beta1, options.beta2, options.epsilon, options.weight_decay,
                options.decoupled_decay ? math::WeightDecay::decoupled : math::WeightDecay::l2});
  };
}

Function dropout(const Graph& graph, const Kernel& kernel) {
  const auto& options = attributes_as<DropoutAttributes>(kernel);
  return [=, n = stored_elements(graph, kernel.inputs[0])](Operands at, const StepContext& context) {
    math::dropout(floats(at, 0), floats(at, 1), n, options.probability, key_of(context, options.stream));
  };
}

Function gelu(const Graph& graph, const Kernel& kernel) {
  const auto kind =
      attributes_as<GeluAttributes>(kernel).tanh_approximation ? math::Gelu::tanh : math::Gelu::exact;
  const std::int64_t n = stored_elements(graph, kernel.inputs[0]);
  if (operation_of(kernel) == Operation::gelu) {
    return
        [=](Operands at, const StepContext&) { math::gelu_forward(floats(at, 0), kind, floats(at, 1), n); };
  }
  return [=](Operands at, const StepContext&) {
    math::gelu_backward(floats(at, 1), floats(at, 0), kind, floats(at, 2), n);
  };
}

Function softmax(const Kernel& kernel) {
  const auto& options = attributes_as<SoftmaxAttributes>(kernel);
  const Shape& shape = kernel.inputs[0].shape;
  const std::int64_t columns = shape.back();
  const std::int64_t rows =
      options.causal ? shape[shape.rank() - 2] : shape.elements() / std::max<std::int64_t>(columns, 1);
  const math::SoftmaxShape size{shape.elements() / std::max<std::int64_t>(rows * columns, 1), rows, columns};
  const math::SoftmaxOptions how{options.scale, options.causal ? math::Mask::causal : math::Mask::none};
  if (operation_of(kernel) == Operation::softmax) {
    return [=](Operands at, const StepContext&) {
      math::softmax_forward(floats(at, 0), size, how, floats(at, 1));
    };
  }
  return [=](Operands at, const StepContext&) {
    math::softmax_backward(floats(at, 1), floats(at, 0), size, how, floats(at, 2));
  };
}

Function layer_norm(const Kernel& kernel) {
  const math::Rows shape = rows_of(kernel.inputs[0]);
  const float epsilon = attributes_as<NormAttributes>(kernel).epsilon;
  if (operation_of(kernel) == Operation::layer_norm) {
    return [=](Operands at, const StepContext&) {
      math::layer_norm_forward(floats(at, 0), floats(at, 1), floats(at, 2), shape, epsilon, floats(at, 3),
                               {floats(at, 4), floats(at, 5)});
    };
  }
  return [=](Operands at, const StepContext&) {
    math::layer_norm_backward(floats(at, 1), floats(at, 4), {floats(at, 2), floats(at, 3)}, floats(at, 0),
                              shape, {floats(at, 5), floats(at, 6), floats(at, 7)});
  };
}

Function cross_entropy(const Kernel& kernel) {
  const math::Rows shape = rows_of(kernel.inputs[0]);
  if (operation_of(kernel) == Operation::cross_entropy) {
    return [=](Operands at, const StepContext&) {
      math::cross_entropy_forward(floats(at, 0), integers(at, 1), shape, floats(at, 2), floats(at, 3));
    };
  }
  const float weight = attributes_as<LossAttributes>(kernel).weight;
  return [=](Operands at, const StepContext&) {
    math::cross_entropy_backward(floats(at, 0), integers(at, 1), floats(at, 2), &weight, shape,
                                 floats(at, 3));
  };
}

Function binary_cross_entropy(const Kernel& kernel) {
  const auto& options = attributes_as<LossAttributes>(kernel);
  const std::int64_t n = kernel.inputs[0].shape.elements();
  if (operation_of(kernel) == Operation::binary_cross_entropy) {
    return [=](Operands at, const StepContext&) {
      math::binary_cross_entropy_forward(floats(at, 0), n, options.target, floats(at, 1));
    };
  }
  return [=](Operands at, const StepContext&) {
    math::binary_cross_entropy_backward(floats(at, 0), n, options.target, &options.weight, floats(at, 1));
  };
}

Function embedding(const Kernel& kernel) {
  const bool forward = operation_of(kernel) == Operation::embedding;
  const Shape& table = (forward ? kernel.inputs[0] : kernel.outputs[0]).shape;
  const auto& part = attributes_as<EmbeddingAttributes>(kernel);
  const math::EmbeddingShape shape{table[0], table[1], kernel.inputs[1].shape.elements(), part.first,
                                   part.rows};
  if (forward) {
    const std::size_t y = kernel.inputs.size();
    const auto others = y > 2 ? math::OtherRows::kept : math::OtherRows::cleared;
    return [=](Operands at, const StepContext&) {
      math::embedding_forward(floats(at, 0), integers(at, 1), shape, floats(at, y), others);
    };
  }
  return [=](Operands at, const StepContext&) {
    math::embedding_backward(floats(at, 0), integers(at, 1), shape, floats(at, 2));
  };
}

constexpr std::size_t kMaxParts = 8;

/// One joined tensor [batch, sequence, parts x heads x width] and its parts [batch, heads, sequence, width].
Function heads(const Kernel& kernel) {
  const bool split = operation_of(kernel) == Operation::split_heads;
  const auto& parts = split ? kernel.outputs : kernel.inputs;
  const Shape& part = parts[0].shape;
  const math::HeadsShape shape{part[0], part[2], part[1], part[3]};
  return [=, count = parts.size()](Operands at, const StepContext&) {
    std::array<float*, kMaxParts> pointers{};
    for (std::size_t i = 0; i < count; ++i) pointers[i] = floats(at, split ? 1 + i : i);
    if (split) {
      math::split_heads(floats(at, 0), shape, {pointers.data(), count});
    } else {
      math::merge_heads({const_cast<const float* const*>(pointers.data()), count}, shape, floats(at, count));
    }
  };
}

}  // namespace

Function own_kernel(const Graph& graph, const Kernel& kernel) {
  switch (operation_of(kernel)) {
    case Operation::sgd:
      return sgd(graph, kernel);
    case Operation::adam:
      return adam(graph, kernel);
    case Operation::dropout:
    case Operation::dropout_backward:
      return dropout(graph, kernel);
    case Operation::gelu:
    case Operation::gelu_backward:
      return gelu(graph, kernel);
    case Operation::softmax:
    case Operation::softmax_backward:
      return softmax(kernel);
    case Operation::layer_norm:
    case Operation::layer_norm_backward:
      return layer_norm(kernel);
    case Operation::cross_entropy:
    case Operation::cross_entropy_backward:
      return cross_entropy(kernel);
    case Operation::binary_cross_entropy:
    case Operation::binary_cross_entropy_backward:
      return binary_cross_entropy(kernel);
    case Operation::embedding:
    case Operation::embedding_backward:
      return embedding(kernel);
    case Operation::split_heads:
    case Operation::merge_heads:
      return heads(kernel);
    default:
      return {};
  }
}

}  // namespace terrace::cpu

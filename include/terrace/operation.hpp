// SPDX-License-Identifier: Apache-2.0
// What a kernel of a neural network does, and the attributes that fix how. A graph knows operations by name
// and attributes as plain values (graph.hpp); this gives both their types and says whether they fit.
//
// The operands of each operation, in order, stand in the table of docs/formats/graph.md. A backward operation
// computes the gradients its name says from the gradient of the forward output and what forward left behind.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "terrace/graph.hpp"
#include "terrace/result.hpp"

namespace terrace {

enum class Operation : std::uint8_t {
  custom,   ///< none of these: a kernel of another backend
  reorder,  ///< the same values in another layout
  conv2d,
  conv2d_backward_data,
  conv2d_backward_weights,
  conv_transpose2d,
  conv_transpose2d_backward_data,
  conv_transpose2d_backward_weights,
  linear,
  linear_backward_data,
  linear_backward_weights,
  matmul,
  max_pool2d,
  max_pool2d_backward,
  avg_pool2d,
  avg_pool2d_backward,
  batch_norm,
  batch_norm_backward,
  batch_norm_inference,
  layer_norm,
  layer_norm_backward,
  softmax,
  softmax_backward,
  relu,
  relu_backward,
  leaky_relu,
  leaky_relu_backward,
  gelu,
  gelu_backward,
  tanh,
  tanh_backward,
  sigmoid,
  sigmoid_backward,
  add,
  mul,
  concat,
  concat_backward,
  split_heads,
  merge_heads,
  embedding,
  embedding_backward,
  dropout,
  dropout_backward,
  lstm,
  lstm_backward,
  cross_entropy,
  cross_entropy_backward,
  binary_cross_entropy,
  binary_cross_entropy_backward,
  sgd,
  adam,
};

inline constexpr std::size_t kOperations = static_cast<std::size_t>(Operation::adam) + 1;

std::string_view to_string(Operation operation);
std::optional<Operation> parse_operation(std::string_view name);

/// A window sliding over height and width: convolutions and pooling.
struct Window {
  using Pair = std::array<std::int64_t, 2>;  ///< height, width
  Pair kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
  bool include_padding = false;  ///< average pooling counts the padding as zeros
  bool operator==(const Window&) const = default;
};

struct NormAttributes {
  float epsilon = 1e-5F;
  float momentum = 0.1F;  ///< weight of the newest batch in the running statistics
  bool relu = false;      ///< y = max(0, normalised)
  bool operator==(const NormAttributes&) const = default;
};

/// c = scale * a b, over the last two axes of operands with equal leading extents.
struct MatmulAttributes {
  bool transpose_a = false, transpose_b = false;
  float scale = 1;
  bool operator==(const MatmulAttributes&) const = default;
};

/// softmax(scale * x) over the last axis; causal: column c counts for row r only if c <= r.
struct SoftmaxAttributes {
  float scale = 1;
  bool causal = false;
  bool operator==(const SoftmaxAttributes&) const = default;
};

struct SlopeAttributes {
  float slope = 0.01F;  ///< of a leaky relu below zero
  bool operator==(const SlopeAttributes&) const = default;
};

struct GeluAttributes {
  bool tanh_approximation = false;
  bool operator==(const GeluAttributes&) const = default;
};

struct AddAttributes {
  bool relu = false;  ///< y = max(0, a + b)
  bool operator==(const AddAttributes&) const = default;
};

struct ConcatAttributes {
  std::int64_t axis = 1;
  bool operator==(const ConcatAttributes&) const = default;
};

/// [batch, sequence, parts * heads * depth] <-> `parts` tensors [batch, heads, sequence, depth].
struct HeadsAttributes {
  std::int64_t parts = 1, heads = 1;
  bool operator==(const HeadsAttributes&) const = default;
};

/// The attributes of an embedding whose table is kept in parts: indices outside of this part leave zeros, or,
/// where y is given, what it holds.
struct EmbeddingAttributes {
  std::int64_t first = 0;  ///< the whole table's row that the weight begins with
  std::int64_t rows = 0;   ///< rows of the whole table; 0: the weight is all of it
  bool operator==(const EmbeddingAttributes&) const = default;
};

struct DropoutAttributes {
  float probability = 0.5F;
  std::uint32_t stream = 0;  ///< random numbers are a function of seed, step, stream and element
  bool operator==(const DropoutAttributes&) const = default;
};

struct LossAttributes {
  float target = 0;  ///< binary cross entropy: what every element should be
  float weight = 1;  ///< of this loss in the sum that is differentiated
  bool operator==(const LossAttributes&) const = default;
};

/// The learning rate is not here: it belongs to the step.
struct OptimizerAttributes {
  float momentum = 0;                                   ///< sgd
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;  ///< adam
  float weight_decay = 0;
  bool decoupled_decay = false;  ///< adam as in AdamW
  bool operator==(const OptimizerAttributes&) const = default;
};

using OperationAttributes =
    std::variant<std::monostate, Window, NormAttributes, MatmulAttributes, SoftmaxAttributes, SlopeAttributes,
                 GeluAttributes, AddAttributes, ConcatAttributes, HeadsAttributes, DropoutAttributes,
                 LossAttributes, OptimizerAttributes, EmbeddingAttributes>;

/// Returns what a kernel does; `custom` where its operation has another name than those above.
Operation operation_of(const Kernel& kernel);

/// Returns the attributes an operation has, with their defaults.
OperationAttributes default_attributes(Operation operation);
/// Returns attributes as a kernel carries them: every field, by its name.
Attributes to_attributes(const OperationAttributes& attributes);
/// Returns a kernel's attributes; a field it does not carry has its default. pre: the kernel passes
/// check_operations
template <class Struct>
Struct attributes_as(const Kernel& kernel);
OperationAttributes attributes_of(const Kernel& kernel);

/// Checks that every kernel of an operation above has as many operands as that wants, and no attribute that
/// it does not take. Names the first kernel that is wrong. pre: the graph is valid
Result<void> check_operations(const Graph& graph);

}  // namespace terrace

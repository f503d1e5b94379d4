// The table of operations: name, operands, attributes, arithmetic and simple gradients of each. A new
// operation is a value of Operation and a row here, a rule in differentiate.cpp if its gradient is more than
// one kernel, and an implementation in a backend.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "terrace/operation.hpp"

namespace terrace {

// ---- Attributes: the fields of each attribute struct, for everything that converts them to and from plain
// values.

template <class Struct, class Type>
struct Field {
  constexpr Field(const char* field_name, Type Struct::*field_member)
      : name(field_name), member(field_member) {}
  const char* name;
  Type Struct::*member;
};

template <class Struct>
inline constexpr std::tuple<> kFields{};
template <>
inline constexpr std::tuple kFields<Window>{
    Field{"kernel", &Window::kernel},   Field{"stride", &Window::stride},
    Field{"padding", &Window::padding}, Field{"dilation", &Window::dilation},
    Field{"groups", &Window::groups},   Field{"include_padding", &Window::include_padding},
};
template <>
inline constexpr std::tuple kFields<NormAttributes>{
    Field{"epsilon", &NormAttributes::epsilon},
    Field{"momentum", &NormAttributes::momentum},
    Field{"relu", &NormAttributes::relu},
};
template <>
inline constexpr std::tuple kFields<MatmulAttributes>{
    Field{"transpose_a", &MatmulAttributes::transpose_a},
    Field{"transpose_b", &MatmulAttributes::transpose_b},
    Field{"scale", &MatmulAttributes::scale},
};
template <>
inline constexpr std::tuple kFields<SoftmaxAttributes>{
    Field{"scale", &SoftmaxAttributes::scale},
    Field{"causal", &SoftmaxAttributes::causal},
};
template <>
inline constexpr std::tuple kFields<SlopeAttributes>{Field{"slope", &SlopeAttributes::slope}};
template <>
inline constexpr std::tuple kFields<GeluAttributes>{
    Field{"tanh_approximation", &GeluAttributes::tanh_approximation}};
template <>
inline constexpr std::tuple kFields<AddAttributes>{Field{"relu", &AddAttributes::relu}};
template <>
inline constexpr std::tuple kFields<ConcatAttributes>{Field{"axis", &ConcatAttributes::axis}};
template <>
inline constexpr std::tuple kFields<HeadsAttributes>{
    Field{"parts", &HeadsAttributes::parts},
    Field{"heads", &HeadsAttributes::heads},
};
template <>
inline constexpr std::tuple kFields<EmbeddingAttributes>{
    Field{"first", &EmbeddingAttributes::first},
    Field{"rows", &EmbeddingAttributes::rows},
};
template <>
inline constexpr std::tuple kFields<DropoutAttributes>{
    Field{"probability", &DropoutAttributes::probability},
    Field{"stream", &DropoutAttributes::stream},
};
template <>
inline constexpr std::tuple kFields<LossAttributes>{
    Field{"target", &LossAttributes::target},
    Field{"weight", &LossAttributes::weight},
};
template <>
inline constexpr std::tuple kFields<OptimizerAttributes>{
    Field{"momentum", &OptimizerAttributes::momentum},
    Field{"beta1", &OptimizerAttributes::beta1},
    Field{"beta2", &OptimizerAttributes::beta2},
    Field{"epsilon", &OptimizerAttributes::epsilon},
    Field{"weight_decay", &OptimizerAttributes::weight_decay},
    Field{"decoupled_decay", &OptimizerAttributes::decoupled_decay},
};

/// Calls visit(name, member) for every field of an attribute struct, constant or not.
template <class Struct, class Visit>
void for_each_field(Struct& attributes, Visit visit) {
  std::apply([&](const auto&... field) { (visit(field.name, attributes.*field.member), ...); },
             kFields<std::remove_const_t<Struct>>);
}

// ---- Operations

/// What the kernel of a gradient reads beside the gradient of the output. Where the output determines the
/// gradient, as its sign does for relu, the input need not be kept.
enum class Kept { nothing, input, output };

/// The gradient of an operation with one input and one output that a single kernel computes.
struct SimpleGradient {
  /// It is `custom` where there is none; differentiate.cpp then has a rule, or fails.
  Operation operation = Operation::custom;
  Kept kept = Kept::nothing;
};

/// Operands are named in order, separated by spaces. `name?` may be left out at the end, `name*` may be
/// repeated any number of times.
struct OperationInfo {
  Operation operation;
  std::string_view name;
  std::string_view inputs, outputs;
  OperationAttributes attributes = {};  ///< the defaults
  /// A rough count per element of the first input; work.cpp has formulas for products and windows.
  double flops = 1;
  bool by_sample = false;  ///< every operand can be split by samples; split_rules.cpp has the other rules
  SimpleGradient gradient = {};
};

/// One row for each operation, in the order of Operation.
inline constexpr std::array<OperationInfo, kOperations> kOperationTable{{
    {.operation = Operation::custom, .name = "custom", .inputs = "any*", .outputs = "any*"},
    {.operation = Operation::reorder, .name = "reorder", .inputs = "x", .outputs = "y", .flops = 0},
    {.operation = Operation::conv2d,
     .name = "conv2d",
     .inputs = "x weight bias?",
     .outputs = "y",
     .attributes = Window{}},
    {.operation = Operation::conv2d_backward_data,
     .name = "conv2d_backward_data",
     .inputs = "dy weight",
     .outputs = "dx",
     .attributes = Window{}},
    {.operation = Operation::conv2d_backward_weights,
     .name = "conv2d_backward_weights",
     .inputs = "x dy",
     .outputs = "dweight dbias?",
     .attributes = Window{}},
    {.operation = Operation::conv_transpose2d,
     .name = "conv_transpose2d",
     .inputs = "x weight bias?",
     .outputs = "y",
     .attributes = Window{}},
    {.operation = Operation::conv_transpose2d_backward_data,
     .name = "conv_transpose2d_backward_data",
     .inputs = "dy weight",
     .outputs = "dx",
     .attributes = Window{}},
    {.operation = Operation::conv_transpose2d_backward_weights,
     .name = "conv_transpose2d_backward_weights",
     .inputs = "x dy",
     .outputs = "dweight dbias?",
     .attributes = Window{}},
    {.operation = Operation::linear, .name = "linear", .inputs = "x weight bias?", .outputs = "y"},
    {.operation = Operation::linear_backward_data,
     .name = "linear_backward_data",
     .inputs = "dy weight",
     .outputs = "dx"},
    {.operation = Operation::linear_backward_weights,
     .name = "linear_backward_weights",
     .inputs = "x dy",
     .outputs = "dweight dbias?"},
    {.operation = Operation::matmul,
     .name = "matmul",
     .inputs = "a b",
     .outputs = "c",
     .attributes = MatmulAttributes{}},
    {.operation = Operation::max_pool2d,
     .name = "max_pool2d",
     .inputs = "x",
     .outputs = "y winners?",
     .attributes = Window{}},
    {.operation = Operation::max_pool2d_backward,
     .name = "max_pool2d_backward",
     .inputs = "dy winners",
     .outputs = "dx",
     .attributes = Window{}},
    {.operation = Operation::avg_pool2d,
     .name = "avg_pool2d",
     .inputs = "x",
     .outputs = "y",
     .attributes = Window{},
     .by_sample = true},
    {.operation = Operation::avg_pool2d_backward,
     .name = "avg_pool2d_backward",
     .inputs = "dy",
     .outputs = "dx",
     .attributes = Window{},
     .by_sample = true},
    {.operation = Operation::batch_norm,
     .name = "batch_norm",
     .inputs = "x weight bias running_mean running_var",
     .outputs = "y mean variance running_mean running_var relu_mask?",
     .attributes = NormAttributes{},
     .flops = 6},
    {.operation = Operation::batch_norm_backward,
     .name = "batch_norm_backward",
     .inputs = "dy x mean variance weight relu_mask?",
     .outputs = "dx dweight dbias",
     .attributes = NormAttributes{},
     .flops = 10},
    {.operation = Operation::batch_norm_inference,
     .name = "batch_norm_inference",
     .inputs = "x weight bias running_mean running_var",
     .outputs = "y",
     .attributes = NormAttributes{}},
    {.operation = Operation::layer_norm,
     .name = "layer_norm",
     .inputs = "x weight bias",
     .outputs = "y mean deviation",
     .attributes = NormAttributes{},
     .flops = 6},
    {.operation = Operation::layer_norm_backward,
     .name = "layer_norm_backward",
     .inputs = "dy x mean deviation weight",
     .outputs = "dx dweight dbias",
     .attributes = NormAttributes{},
     .flops = 10},
    {.operation = Operation::softmax,
     .name = "softmax",
     .inputs = "x",
     .outputs = "y",
     .attributes = SoftmaxAttributes{},
     .flops = 4,
     .gradient = {Operation::softmax_backward, Kept::output}},
    {.operation = Operation::softmax_backward,
     .name = "softmax_backward",
     .inputs = "dy y",
     .outputs = "dx",
     .attributes = SoftmaxAttributes{},
     .flops = 4},
    {.operation = Operation::relu,
     .name = "relu",
     .inputs = "x",
     .outputs = "y",
     .by_sample = true,
     .gradient = {Operation::relu_backward, Kept::output}},
    {.operation = Operation::relu_backward,
     .name = "relu_backward",
     .inputs = "dy y",
     .outputs = "dx",
     .by_sample = true},
    {.operation = Operation::leaky_relu,
     .name = "leaky_relu",
     .inputs = "x",
     .outputs = "y",
     .attributes = SlopeAttributes{},
     .by_sample = true,
     .gradient = {Operation::leaky_relu_backward, Kept::output}},
    {.operation = Operation::leaky_relu_backward,
     .name = "leaky_relu_backward",
     .inputs = "dy y",
     .outputs = "dx",
     .attributes = SlopeAttributes{},
     .by_sample = true},
    {.operation = Operation::gelu,
     .name = "gelu",
     .inputs = "x",
     .outputs = "y",
     .attributes = GeluAttributes{},
     .flops = 6,
     .by_sample = true,
     .gradient = {Operation::gelu_backward, Kept::input}},
    {.operation = Operation::gelu_backward,
     .name = "gelu_backward",
     .inputs = "dy x",
     .outputs = "dx",
     .attributes = GeluAttributes{},
     .flops = 10,
     .by_sample = true},
    {.operation = Operation::tanh,
     .name = "tanh",
     .inputs = "x",
     .outputs = "y",
     .by_sample = true,
     .gradient = {Operation::tanh_backward, Kept::output}},
    {.operation = Operation::tanh_backward,
     .name = "tanh_backward",
     .inputs = "dy y",
     .outputs = "dx",
     .by_sample = true},
    {.operation = Operation::sigmoid,
     .name = "sigmoid",
     .inputs = "x",
     .outputs = "y",
     .by_sample = true,
     .gradient = {Operation::sigmoid_backward, Kept::output}},
    {.operation = Operation::sigmoid_backward,
     .name = "sigmoid_backward",
     .inputs = "dy y",
     .outputs = "dx",
     .by_sample = true},
    {.operation = Operation::add,
     .name = "add",
     .inputs = "a b",
     .outputs = "y",
     .attributes = AddAttributes{},
     .by_sample = true},
    {.operation = Operation::mul, .name = "mul", .inputs = "a b", .outputs = "y", .by_sample = true},
    {.operation = Operation::concat,
     .name = "concat",
     .inputs = "x x*",
     .outputs = "y",
     .attributes = ConcatAttributes{},
     .flops = 0},
    {.operation = Operation::concat_backward,
     .name = "concat_backward",
     .inputs = "dy",
     .outputs = "dx dx*",
     .attributes = ConcatAttributes{},
     .flops = 0},
    {.operation = Operation::split_heads,
     .name = "split_heads",
     .inputs = "x",
     .outputs = "y y*",
     .attributes = HeadsAttributes{},
     .flops = 0},
    {.operation = Operation::merge_heads,
     .name = "merge_heads",
     .inputs = "x x*",
     .outputs = "y",
     .attributes = HeadsAttributes{},
     .flops = 0},
    {.operation = Operation::embedding,
     .name = "embedding",
     .inputs = "weight indices y?",
     .outputs = "y",
     .attributes = EmbeddingAttributes{},
     .flops = 0},
    {.operation = Operation::embedding_backward,
     .name = "embedding_backward",
     .inputs = "dy indices",
     .outputs = "dweight",
     .attributes = EmbeddingAttributes{}},
    {.operation = Operation::dropout,
     .name = "dropout",
     .inputs = "x",
     .outputs = "y",
     .attributes = DropoutAttributes{},
     .gradient = {Operation::dropout_backward, Kept::nothing}},
    {.operation = Operation::dropout_backward,
     .name = "dropout_backward",
     .inputs = "dy",
     .outputs = "dx",
     .attributes = DropoutAttributes{}},
    {.operation = Operation::lstm,
     .name = "lstm",
     .inputs = "x weight_ih weight_hh bias",
     .outputs = "y gates"},
    {.operation = Operation::lstm_backward,
     .name = "lstm_backward",
     .inputs = "x weight_ih weight_hh bias y dy gates",
     .outputs = "dx dweight_ih dweight_hh dbias"},
    {.operation = Operation::cross_entropy,
     .name = "cross_entropy",
     .inputs = "logits labels",
     .outputs = "loss log_sum",
     .attributes = LossAttributes{},
     .flops = 4},
    {.operation = Operation::cross_entropy_backward,
     .name = "cross_entropy_backward",
     .inputs = "logits labels log_sum",
     .outputs = "dlogits",
     .attributes = LossAttributes{},
     .flops = 4},
    {.operation = Operation::binary_cross_entropy,
     .name = "binary_cross_entropy",
     .inputs = "logits",
     .outputs = "loss",
     .attributes = LossAttributes{}},
    {.operation = Operation::binary_cross_entropy_backward,
     .name = "binary_cross_entropy_backward",
     .inputs = "logits",
     .outputs = "dlogits",
     .attributes = LossAttributes{}},
    {.operation = Operation::sgd,
     .name = "sgd",
     .inputs = "weight gradient momentum?",
     .outputs = "weight momentum?",
     .attributes = OptimizerAttributes{},
     .flops = 6},
    {.operation = Operation::adam,
     .name = "adam",
     .inputs = "weight gradient first_moment second_moment",
     .outputs = "weight first_moment second_moment",
     .attributes = OptimizerAttributes{},
     .flops = 10},
}};

constexpr const OperationInfo& info_of(Operation operation) {
  return kOperationTable[static_cast<std::size_t>(operation)];
}

/// Returns whether that many operands fit one side of an operation.
bool accepts(std::string_view side, std::size_t operands);

}  // namespace terrace

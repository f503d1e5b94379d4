#include "nn/differentiate.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "nn/operation_table.hpp"

namespace terrace {
namespace {

std::vector<Operand> kept_of(const Kernel& forward, Kept kept) {
  if (kept == Kept::nothing) return {};
  return {kept == Kept::input ? forward.inputs[0] : forward.outputs[0]};
}

Operand view(Value value) { return {value.tensor, value.shape, {}, {}}; }

}  // namespace

Differentiation::Differentiation(Net& net, std::string_view prefix)
    : net_(net), wanted_(net.graph_.tensors.size()) {
  const Graph& graph = net.graph_;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    wanted_[i] = graph.tensors[i].kind == TensorKind::weight && graph.tensors[i].name.starts_with(prefix);
  }
  for (const Kernel& kernel : graph.kernels) {
    if (kernel.phase != Phase::forward) continue;
    if (!std::any_of(kernel.inputs.begin(), kernel.inputs.end(),
                     [&](const Operand& in) { return wants(in); }))
      continue;
    for (const Operand& out : kernel.outputs) {
      if (!graph[out.tensor].persistent) wanted_[out.tensor.index] = true;
    }
  }
  gradients_.resize(graph.tensors.size());
}

Gradients Differentiation::run(const std::vector<Value>& losses) {
  const std::uint32_t weights = static_cast<std::uint32_t>(net_.graph_.tensors.size());
  for (const Value& loss : losses) losses_.push_back(loss.tensor);
  const auto phase = net_.phase_;
  const auto layer = net_.layer_;
  net_.phase_ = Phase::backward;
  for (std::size_t i = net_.graph_.kernels.size(); i-- > 0;) {
    // A copy: emitting moves the kernels.
    const Kernel forward = net_.graph_.kernels[i];
    if (forward.phase == Phase::forward) visit(forward);
  }
  net_.phase_ = phase;
  net_.layer_ = layer;
  Gradients found;
  for (std::uint32_t i = 0; i < weights; ++i) {
    if (net_.graph_.tensors[i].kind == TensorKind::weight && gradients_[i]) {
      found.push_back({TensorId{i}, gradients_[i]->value, gradients_[i]->layer});
    }
  }
  return found;
}

bool Differentiation::has_gradient(const Operand& operand) const {
  return gradients_[operand.tensor.index].has_value();
}

Value Differentiation::gradient_of(const Operand& operand) const {
  return {gradients_[operand.tensor.index]->value.tensor, operand.shape};
}

void Differentiation::contribute(const Operand& input, Value part) {
  if (!wants(input)) return;
  auto& gradient = gradients_[input.tensor.index];
  if (!gradient) {
    gradient = Found{part, net_.layer_};
    return;
  }
  // Both sums and their parts may be read by others too: whether this works in place is decided later.
  Kernel sum = start(Operation::add, to_attributes(AddAttributes{}),
                     {view({gradient->value.tensor, input.shape}), view(part)});
  sum.in_place = {{0, 0}, {1, 0}};
  gradient = Found{gradient_output(sum, input), net_.layer_};
  finish(std::move(sum));
}

Kernel Differentiation::start(Operation operation, const Attributes& attributes,
                              std::vector<Operand> inputs) const {
  Kernel kernel;
  kernel.operation = to_string(operation);
  kernel.attributes = attributes;
  kernel.inputs = std::move(inputs);
  return kernel;
}

Value Differentiation::gradient_output(Kernel& kernel, const Operand& input) {
  std::string name = net_.unique_name("gradient of " + net_.graph_[input.tensor].name);
  const Value gradient{net_.new_tensor(std::move(name), input.shape, TensorKind::gradient), input.shape};
  kernel.outputs.push_back(view(gradient));
  return gradient;
}

void Differentiation::finish(Kernel kernel) {
  kernel.name = net_.kernel_name(operation_of(kernel));
  net_.emit(std::move(kernel));
}

void Differentiation::visit(const Kernel& forward) {
  const bool is_loss = std::find(losses_.begin(), losses_.end(), forward.outputs[0].tensor) != losses_.end();
  if (!wants(forward.outputs[0])) return;
  const bool reached = is_loss || std::any_of(forward.outputs.begin(), forward.outputs.end(),
                                              [&](const Operand& out) { return has_gradient(out); });
  if (!reached) return;
  net_.layer_ = forward.layer;
  const Operand& out = forward.outputs[0];
  const bool can_be_loss = operation_of(forward) == Operation::cross_entropy ||
                           operation_of(forward) == Operation::binary_cross_entropy;
  if (is_loss && !can_be_loss)
    net_.fail(forward.operation + " is no loss: give backward the losses one by one");
  if (can_be_loss && has_gradient(out))
    net_.fail("a loss is the end: nothing computed from " + net_.graph_[out.tensor].name +
              " can be differentiated");
  const SimpleGradient simple = info_of(operation_of(forward)).gradient;
  if (simple.operation != Operation::custom)
    return pointwise(forward, simple.operation, kept_of(forward, simple.kept));
  switch (operation_of(forward)) {
    case Operation::cross_entropy:
      return loss(forward, Operation::cross_entropy_backward);
    case Operation::binary_cross_entropy:
      return loss(forward, Operation::binary_cross_entropy_backward);
    case Operation::conv2d:
      return window(forward, Operation::conv2d_backward_data, Operation::conv2d_backward_weights);
    case Operation::conv_transpose2d:
      return window(forward, Operation::conv_transpose2d_backward_data,
                    Operation::conv_transpose2d_backward_weights);
    case Operation::linear:
      return window(forward, Operation::linear_backward_data, Operation::linear_backward_weights);
    case Operation::matmul:
      return matmul(forward);
    case Operation::max_pool2d:
    case Operation::avg_pool2d:
      return pooling(forward);
    case Operation::batch_norm:
      return normalisation(forward, Operation::batch_norm_backward);
    case Operation::layer_norm:
      return normalisation(forward, Operation::layer_norm_backward);
    case Operation::add:
      return addition(forward);
    case Operation::mul:
      return product(forward);
    case Operation::concat:
      return concat(forward);
    case Operation::split_heads:
    case Operation::merge_heads:
      return heads(forward);
    case Operation::embedding:
      return embedding(forward);
    case Operation::lstm:
      return lstm(forward);
    default:
      net_.fail(forward.operation + " cannot be differentiated: build the net for training");
  }
}

void Differentiation::loss(const Kernel& forward, Operation backward) {
  std::vector<Operand> inputs = forward.inputs;
  inputs.insert(inputs.end(), forward.outputs.begin() + 1, forward.outputs.end());
  Kernel kernel = start(backward, forward.attributes, std::move(inputs));
  kernel.in_place = {{0, 0}};
  const Value dx = gradient_output(kernel, forward.inputs[0]);
  finish(std::move(kernel));
  contribute(forward.inputs[0], dx);
}

void Differentiation::pointwise(const Kernel& forward, Operation backward, const std::vector<Operand>& left) {
  std::vector<Operand> inputs{view(gradient_of(forward.outputs[0]))};
  inputs.insert(inputs.end(), left.begin(), left.end());
  Kernel kernel = start(backward, forward.attributes, std::move(inputs));
  kernel.in_place = {{0, 0}};
  const Value dx = gradient_output(kernel, forward.inputs[0]);
  finish(std::move(kernel));
  contribute(forward.inputs[0], dx);
}

void Differentiation::window(const Kernel& forward, Operation data, Operation weights) {
  const Operand dy = view(gradient_of(forward.outputs[0]));
  // Weights first: x may be freed before the gradient of its own size is made.
  if (std::any_of(forward.inputs.begin() + 1, forward.inputs.end(),
                  [&](const Operand& in) { return wants(in); })) {
    Kernel kernel = start(weights, forward.attributes, {forward.inputs[0], dy});
    std::vector<Value> parts;
    for (std::size_t i = 1; i < forward.inputs.size(); ++i)
      parts.push_back(gradient_output(kernel, forward.inputs[i]));
    finish(std::move(kernel));
    for (std::size_t i = 0; i < parts.size(); ++i) contribute(forward.inputs[i + 1], parts[i]);
  }
  if (wants(forward.inputs[0])) {
    Kernel kernel = start(data, forward.attributes, {dy, forward.inputs[1]});
    const Value dx = gradient_output(kernel, forward.inputs[0]);
    finish(std::move(kernel));
    contribute(forward.inputs[0], dx);
  }
}

void Differentiation::matmul(const Kernel& forward) {
  const auto& options = attributes_as<MatmulAttributes>(forward);
  const bool ta = options.transpose_a, tb = options.transpose_b;
  const Operand &a = forward.inputs[0], &b = forward.inputs[1], dy = view(gradient_of(forward.outputs[0]));
  const auto gradient = [&](const Operand& of, const Operand& left, bool tl, const Operand& right, bool tr) {
    if (!wants(of)) return;
    Kernel kernel =
        start(Operation::matmul, to_attributes(MatmulAttributes{tl, tr, options.scale}), {left, right});
    const Value part = gradient_output(kernel, of);
    finish(std::move(kernel));
    contribute(of, part);
  };
  // With A and B as stored: dA = dC B' or its transpose, dB = A' dC or its transpose.
  ta ? gradient(a, b, tb, dy, true) : gradient(a, dy, false, b, !tb);
  tb ? gradient(b, dy, true, a, ta) : gradient(b, a, !ta, dy, false);
}

void Differentiation::pooling(const Kernel& forward) {
  const bool is_max = operation_of(forward) == Operation::max_pool2d;
  std::vector<Operand> inputs{view(gradient_of(forward.outputs[0]))};
  if (is_max) inputs.push_back(forward.outputs[1]);
  Kernel kernel = start(is_max ? Operation::max_pool2d_backward : Operation::avg_pool2d_backward,
                        forward.attributes, std::move(inputs));
  const Value dx = gradient_output(kernel, forward.inputs[0]);
  finish(std::move(kernel));
  contribute(forward.inputs[0], dx);
}

void Differentiation::normalisation(const Kernel& forward, Operation backward) {
  const auto &in = forward.inputs, &out = forward.outputs;
  std::vector<Operand> inputs{view(gradient_of(out[0])), in[0], out[1], out[2], in[1]};
  if (backward == Operation::batch_norm_backward && attributes_as<NormAttributes>(forward).relu) {
    inputs.push_back(out.back());
  }
  Kernel kernel = start(backward, forward.attributes, std::move(inputs));
  kernel.in_place = {{0, 0}};
  std::vector<Value> parts;
  for (std::size_t i = 0; i < 3; ++i) parts.push_back(gradient_output(kernel, in[i]));
  finish(std::move(kernel));
  for (std::size_t i = 0; i < 3; ++i) contribute(in[i], parts[i]);
}

void Differentiation::addition(const Kernel& forward) {
  Value dy = gradient_of(forward.outputs[0]);
  if (attributes_as<AddAttributes>(forward).relu) {
    Kernel kernel = start(Operation::relu_backward, {}, {view(dy), forward.outputs[0]});
    kernel.in_place = {{0, 0}};
    dy = gradient_output(kernel, forward.outputs[0]);
    finish(std::move(kernel));
  }
  // Both summands have the same gradient: one tensor serves them.
  contribute(forward.inputs[0], dy);
  contribute(forward.inputs[1], dy);
}

void Differentiation::product(const Kernel& forward) {
  const Operand dy = view(gradient_of(forward.outputs[0]));
  for (const std::size_t i : {0U, 1U}) {
    if (!wants(forward.inputs[i])) continue;
    Kernel kernel = start(Operation::mul, {}, {dy, forward.inputs[1 - i]});
    kernel.in_place = {{0, 0}};
    const Value part = gradient_output(kernel, forward.inputs[i]);
    finish(std::move(kernel));
    contribute(forward.inputs[i], part);
  }
}

void Differentiation::concat(const Kernel& forward) {
  Kernel kernel =
      start(Operation::concat_backward, forward.attributes, {view(gradient_of(forward.outputs[0]))});
  std::vector<Value> parts;
  for (const Operand& input : forward.inputs) parts.push_back(gradient_output(kernel, input));
  finish(std::move(kernel));
  for (std::size_t i = 0; i < parts.size(); ++i) contribute(forward.inputs[i], parts[i]);
}

void Differentiation::heads(const Kernel& forward) {
  const bool split = operation_of(forward) == Operation::split_heads;
  std::vector<Operand> inputs;
  for (const Operand& out : forward.outputs) {
    check(has_gradient(out), "every part of split heads is used");
    inputs.push_back(view(gradient_of(out)));
  }
  Kernel kernel =
      start(split ? Operation::merge_heads : Operation::split_heads, forward.attributes, std::move(inputs));
  std::vector<Value> parts;
  for (const Operand& input : forward.inputs) parts.push_back(gradient_output(kernel, input));
  finish(std::move(kernel));
  for (std::size_t i = 0; i < parts.size(); ++i) contribute(forward.inputs[i], parts[i]);
}

void Differentiation::embedding(const Kernel& forward) {
  Kernel kernel = start(Operation::embedding_backward, forward.attributes,
                        {view(gradient_of(forward.outputs[0])), forward.inputs[1]});
  const Value part = gradient_output(kernel, forward.inputs[0]);
  finish(std::move(kernel));
  contribute(forward.inputs[0], part);
}

void Differentiation::lstm(const Kernel& forward) {
  std::vector<Operand> inputs = forward.inputs;
  inputs.push_back(forward.outputs[0]);
  inputs.push_back(view(gradient_of(forward.outputs[0])));
  inputs.push_back(forward.outputs[1]);
  Kernel kernel = start(Operation::lstm_backward, {}, std::move(inputs));
  std::vector<Value> parts;
  for (const Operand& input : forward.inputs) parts.push_back(gradient_output(kernel, input));
  finish(std::move(kernel));
  for (std::size_t i = 0; i < parts.size(); ++i) contribute(forward.inputs[i], parts[i]);
}

}  // namespace terrace

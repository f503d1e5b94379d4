// The operations of Net that have no weights.
#include <fmt/format.h>

#include "terrace/net.hpp"

namespace terrace {

Value Net::matmul(Value a, Value b, const MatmulAttributes& options) {
  const std::size_t rank = a.shape.rank();
  const auto text = [&] {
    return fmt::format("matmul of {} and {}", to_string(a.shape), to_string(b.shape));
  };
  require(rank >= 2 && rank == b.shape.rank(), text() + " wants two equal ranks of two or more");
  Shape out = a.shape;
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) {
    require(a.shape[axis] == b.shape[axis], text() + " has unequal leading extents");
  }
  const std::size_t rows = rank - 2, columns = rank - 1;
  require(a.shape[options.transpose_a ? rows : columns] == b.shape[options.transpose_b ? columns : rows],
          text() + " has unequal inner extents");
  out[rows] = a.shape[options.transpose_a ? columns : rows];
  out[columns] = b.shape[options.transpose_b ? rows : columns];
  Kernel kernel;
  kernel.operation = to_string(Operation::matmul);
  kernel.attributes = to_attributes(options);
  kernel.inputs = {operand(a), operand(b)};
  return make(std::move(kernel), out);
}

Value Net::pool(Operation operation, Value x, const Pool& options) {
  require(x.shape.rank() == 4,
          fmt::format("{} wants an image, not {}", to_string(operation), to_string(x.shape)));
  Window window;
  window.kernel = options.kernel;
  window.stride = options.stride[0] == 0 ? options.kernel : options.stride;
  window.padding = options.padding;
  window.include_padding = options.include_padding;
  Shape out = x.shape;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    require(window.kernel[axis] > 0 && window.stride[axis] > 0 && window.padding[axis] >= 0 &&
                2 * window.padding[axis] <= window.kernel[axis],
            "a pooling window is above zero and padded by at most half of itself");
    const std::int64_t room = x.shape[2 + axis] + 2 * window.padding[axis] - window.kernel[axis];
    require(room >= 0, fmt::format("a window of {}x{} does not fit an image {}", window.kernel[0],
                                   window.kernel[1], to_string(x.shape)));
    out[2 + axis] = room / window.stride[axis] + 1;
  }
  Kernel kernel;
  kernel.operation = to_string(operation);
  kernel.attributes = to_attributes(window);
  kernel.inputs = {operand(x)};
  if (operation == Operation::max_pool2d && mode_ == Mode::training) {
    const auto name = unique_name(fmt::format("{}:winners", graph_.layers[layer_]));
    kernel.outputs = {operand({new_tensor(name, out, TensorKind::activation, DataType::u8), out})};
  }
  return make(std::move(kernel), out);
}

Value Net::max_pool2d(Value x, const Pool& options) { return pool(Operation::max_pool2d, x, options); }
Value Net::avg_pool2d(Value x, const Pool& options) { return pool(Operation::avg_pool2d, x, options); }

Value Net::global_avg_pool2d(Value x) {
  require(x.shape.rank() == 4, fmt::format("pooling wants an image, not {}", to_string(x.shape)));
  return avg_pool2d(x, {.kernel = {x.shape[2], x.shape[3]}});
}

Value Net::softmax(Value x, const SoftmaxAttributes& options) {
  require(x.shape.rank() >= (options.causal ? 2U : 1U), "softmax wants rows");
  return unary(Operation::softmax, x, options);
}
Value Net::relu(Value x) { return unary(Operation::relu, x); }
Value Net::leaky_relu(Value x, float slope) {
  require(slope > 0, "the slope of a leaky relu is above zero");
  return unary(Operation::leaky_relu, x, SlopeAttributes{slope});
}
Value Net::gelu(Value x, const GeluAttributes& options) { return unary(Operation::gelu, x, options); }
Value Net::tanh(Value x) { return unary(Operation::tanh, x); }
Value Net::sigmoid(Value x) { return unary(Operation::sigmoid, x); }
Value Net::add(Value a, Value b, const AddAttributes& options) {
  return binary(Operation::add, a, b, options);
}
Value Net::mul(Value a, Value b) { return binary(Operation::mul, a, b, {}); }

Value Net::concat(const std::vector<Value>& parts, std::int64_t axis) {
  require(!parts.empty(), "concat wants at least one part");
  Shape out = parts[0].shape;
  require(axis >= 0 && axis < static_cast<std::int64_t>(out.rank()),
          fmt::format("concat has no axis {}", axis));
  const auto along = static_cast<std::size_t>(axis);
  out[along] = 0;
  Kernel kernel;
  kernel.operation = to_string(Operation::concat);
  kernel.attributes = to_attributes(ConcatAttributes{axis});
  for (const Value& part : parts) {
    Shape rest = part.shape;
    require(rest.rank() == out.rank(), "concat wants parts of one rank");
    rest[along] = out[along];
    require(rest == out, fmt::format("concat along axis {} of {} and {}", axis, to_string(parts[0].shape),
                                     to_string(part.shape)));
    out[along] += part.shape[along];
    kernel.inputs.push_back(operand(part));
  }
  return make(std::move(kernel), out);
}

std::vector<Value> Net::split_heads(Value x, const HeadsAttributes& options) {
  require(x.shape.rank() == 3 && options.parts > 0 && options.heads > 0 &&
              x.shape[2] % (options.parts * options.heads) == 0,
          fmt::format("cannot split {} into {} parts of {} heads", to_string(x.shape), options.parts,
                      options.heads));
  const Shape part{x.shape[0], options.heads, x.shape[1], x.shape[2] / (options.parts * options.heads)};
  Kernel kernel;
  kernel.operation = to_string(Operation::split_heads);
  kernel.attributes = to_attributes(options);
  kernel.inputs = {operand(x)};
  kernel.name = kernel_name(operation_of(kernel));
  std::vector<Value> parts;
  for (std::int64_t i = 0; i < options.parts; ++i) {
    parts.push_back({new_tensor(fmt::format("{}.{}", kernel.name, i), part, TensorKind::activation), part});
    kernel.outputs.push_back(operand(parts.back()));
  }
  emit(std::move(kernel));
  return parts;
}

Value Net::merge_heads(Value x, std::int64_t heads) {
  require(x.shape.rank() == 4 && x.shape[1] == heads,
          fmt::format("cannot merge {} heads of {}", heads, to_string(x.shape)));
  Kernel kernel;
  kernel.operation = to_string(Operation::merge_heads);
  kernel.attributes = to_attributes(HeadsAttributes{1, heads});
  kernel.inputs = {operand(x)};
  return make(std::move(kernel), {x.shape[0], x.shape[2], heads * x.shape[3]});
}

Value Net::dropout(Value x, float probability) {
  require(probability >= 0 && probability < 1, fmt::format("cannot drop {} of the elements", probability));
  if (mode_ == Mode::inference || probability == 0) return x;
  return unary(Operation::dropout, x, DropoutAttributes{probability, dropouts_++});
}

Value Net::cross_entropy(Value logits, Value labels, float weight) {
  require(logits.shape.rank() == 2 && labels.shape.elements() == logits.shape[0] &&
              graph_[labels.tensor].type == DataType::i32,
          fmt::format("cross_entropy wants [rows, classes] and i32 [rows], not {} and {}",
                      to_string(logits.shape), to_string(labels.shape)));
  Kernel kernel;
  kernel.operation = to_string(Operation::cross_entropy);
  kernel.attributes = to_attributes(LossAttributes{0, weight});
  const Shape rows{logits.shape[0]};
  kernel.inputs = {operand(logits), operand(reshape(labels, rows))};
  const auto name = unique_name(fmt::format("{}:log_sum", graph_.layers[layer_]));
  kernel.outputs = {operand({new_tensor(name, rows, TensorKind::statistics), rows})};
  return make(std::move(kernel), {1});
}

Value Net::binary_cross_entropy(Value logits, float target, float weight) {
  require(target >= 0 && target <= 1, fmt::format("a probability of {} is no target", target));
  Kernel kernel;
  kernel.operation = to_string(Operation::binary_cross_entropy);
  kernel.attributes = to_attributes(LossAttributes{target, weight});
  kernel.inputs = {operand(logits)};
  return make(std::move(kernel), {1});
}

}  // namespace terrace

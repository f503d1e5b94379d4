#include "terrace/net.hpp"

#include <fmt/format.h>

#include "graph/checked_size.hpp"
#include "nn/work.hpp"

namespace terrace {

Net::Net(std::string name, Mode mode) : mode_(mode) {
  graph_.name = std::move(name);
  graph_.layers.emplace_back("input");
}

Net::Scope Net::scope(std::string_view name) {
  std::string outer = scope_;
  scope_ = full_name(name);
  return {*this, std::move(outer)};
}

Value Net::input(std::string_view name, const Shape& shape, DataType type) {
  require(!find_tensor(graph_, full_name(name)),
          fmt::format("there are two inputs named {}", full_name(name)));
  return {new_tensor(full_name(name), shape, TensorKind::input, type), shape};
}

Value Net::positions(std::string_view name, const Shape& shape, std::int64_t period) {
  require(period > 0, fmt::format("positions {} count modulo {}: give a period above zero", name, period));
  const Value value = input(name, shape, DataType::i32);
  Tensor& tensor = graph_[value.tensor];
  tensor.persistent = true;
  tensor.initial = {Initial::Kind::positions, static_cast<float>(period), 0};
  return value;
}

Value Net::parameter(std::string_view name, const Shape& shape, Initial initial) {
  return {persistent(name, shape, TensorKind::weight, initial), shape};
}

void Net::result(Value x) { graph_.results.push_back(x.tensor); }

Value Net::reshape(Value x, const Shape& shape) const {
  require(checked_size(shape, DataType::f32) && x.shape.elements() == shape.elements(),
          fmt::format("cannot see {} elements of shape {} as {}", x.shape.elements(), to_string(x.shape),
                      to_string(shape)));
  return {x.tensor, shape};
}

Value Net::flatten(Value x) const {
  require(x.shape.rank() > 0, "cannot flatten a scalar");
  return reshape(x, {x.shape[0], x.shape.elements_from(1)});
}

Graph Net::finish() && {
  // What can still be wrong is how things were named.
  if (const auto valid = validate(graph_); !valid)
    throw GraphError(fmt::format("{}: {}", graph_.name, valid.error().message));
  if (const auto known = check_operations(graph_); !known)
    throw GraphError(fmt::format("{}: {}", graph_.name, known.error().message));
  return std::move(graph_);
}

std::string Net::full_name(std::string_view name) const {
  return scope_.empty() ? std::string(name) : fmt::format("{}.{}", scope_, name);
}

void Net::begin_layer(std::string_view unscoped) {
  layer_ = static_cast<std::uint32_t>(graph_.layers.size());
  graph_.layers.push_back(scope_.empty() ? std::string(unscoped) : scope_);
}

void Net::fail(const std::string& why) const {
  throw GraphError(fmt::format("{}, layer {}: {}", graph_.name, graph_.layers[layer_], why));
}

void Net::require(bool holds, const std::string& why) const {
  if (!holds) fail(why);
}

std::string Net::unique_name(std::string stem) {
  std::uint32_t& uses = names_[stem];
  if (uses++ == 0) return stem;
  // A numbered name may be a stem as well: the second gradient of x, and the gradient of the second x.
  for (;; ++uses) {
    std::string name = fmt::format("{}#{}", stem, uses);
    if (names_.try_emplace(name, 1).second) return name;
  }
}

std::string Net::kernel_name(Operation operation) {
  return unique_name(fmt::format("{}:{}", graph_.layers[layer_], to_string(operation)));
}

TensorId Net::new_tensor(std::string name, const Shape& shape, TensorKind kind, DataType type) {
  const auto size = checked_size(shape, type);
  require(size.has_value(),
          fmt::format("{} of shape {} has more bytes than 63 bits count", name, to_string(shape)));
  const TensorId id{static_cast<std::uint32_t>(graph_.tensors.size())};
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = shape;
  tensor.type = type;
  tensor.kind = kind;
  tensor.bytes = *size;
  graph_.tensors.push_back(std::move(tensor));
  return id;
}

TensorId Net::persistent(std::string_view name, const Shape& shape, TensorKind kind, Initial initial) {
  const auto [known, is_new] = persistent_.try_emplace(full_name(name));
  if (is_new) {
    known->second = new_tensor(known->first, shape, kind);
    Tensor& tensor = graph_[known->second];
    tensor.persistent = true;
    tensor.initial = initial;
  }
  require(graph_[known->second].shape == shape,
          fmt::format("{} is {} here and was {} before", known->first, to_string(shape),
                      to_string(graph_[known->second].shape)));
  return known->second;
}

Operand Net::operand(Value value) const {
  require(static_cast<bool>(value.tensor), "an operand was never computed");
  return {value.tensor, value.shape, {}, {}};
}

void Net::emit(Kernel kernel) {
  kernel.layer = layer_;
  kernel.phase = phase_;
  count_work(graph_, kernel);
  graph_.kernels.push_back(std::move(kernel));
}

Value Net::make(Kernel kernel, const Shape& shape) {
  kernel.name = kernel_name(operation_of(kernel));
  const Value out{new_tensor(kernel.name, shape, TensorKind::activation), shape};
  kernel.outputs.insert(kernel.outputs.begin(), operand(out));
  emit(std::move(kernel));
  return out;
}

Value Net::apply(Operation operation, const std::vector<Value>& inputs, const Shape& shape,
                 const OperationAttributes& attributes) {
  Kernel kernel;
  kernel.operation = to_string(operation);
  kernel.attributes = to_attributes(attributes);
  for (const Value& input : inputs) kernel.inputs.push_back(operand(input));
  return make(std::move(kernel), shape);
}

Value Net::unary(Operation operation, Value x, const OperationAttributes& attributes) {
  Kernel kernel;
  kernel.operation = to_string(operation);
  kernel.attributes = to_attributes(attributes);
  kernel.inputs = {operand(x)};
  kernel.in_place = {{0, 0}};
  return make(std::move(kernel), x.shape);
}

Value Net::binary(Operation operation, Value a, Value b, const OperationAttributes& attributes) {
  require(a.shape == b.shape, fmt::format("{} wants equal shapes, not {} and {}", to_string(operation),
                                          to_string(a.shape), to_string(b.shape)));
  Kernel kernel;
  kernel.operation = to_string(operation);
  kernel.attributes = to_attributes(attributes);
  kernel.inputs = {operand(a), operand(b)};
  kernel.in_place = {{0, 0}, {1, 0}};
  return make(std::move(kernel), a.shape);
}

}  // namespace terrace

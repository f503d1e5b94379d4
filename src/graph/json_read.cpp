// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <limits>
#include <unordered_map>

#include "base/json_reader.hpp"
#include "graph/checked_size.hpp"
#include "graph/json_keys.hpp"
#include "terrace/graph_json.hpp"

namespace terrace {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

void read(const JsonValue& json, float& value) { value = json.single(); }
void read(const JsonValue& json, bool& value) { value = json.flag(); }
void read(const JsonValue& json, std::string& value) { value = json.text(); }
void read(const JsonValue& json, std::int64_t& value) { value = json.integer(0, kMost); }
void read(const JsonValue& json, Bytes& value) {
  value.count = static_cast<std::uint64_t>(json.integer(0, kMost));
}
void read(const JsonValue& json, std::uint32_t& value) {
  value = static_cast<std::uint32_t>(json.integer(0, std::numeric_limits<std::uint32_t>::max()));
}
void read(const JsonValue& json, std::uint8_t& value) {
  value = static_cast<std::uint8_t>(json.integer(0, std::numeric_limits<std::uint8_t>::max()));
}
void read(const JsonValue& json, double& value) {
  value = json.number();
  if (value < 0) json.fail(fmt::format("a number not below zero is wanted, not {}", value));
}
void read(const JsonValue& json, Shape& shape) {
  shape = {};
  const std::size_t rank = json.size();
  if (rank > Shape::kMaxRank) json.fail(fmt::format("a shape has at most {} extents", Shape::kMaxRank));
  for (std::size_t axis = 0; axis < rank; ++axis) shape.push_back(json[axis].integer(0, kMost));
}
void read(const JsonValue& json, InPlacePair& pair) {
  if (json.size() != 2) json.fail("two numbers are wanted: which input, which output");
  read(json[0], pair.input);
  read(json[1], pair.output);
}

/// An enumerator by its name, of all up to `last`.
template <class Enum>
void read_name(const JsonValue& json, Enum& value, Enum last) {
  const std::string& name = json.text();
  std::string known;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    value = static_cast<Enum>(i);
    if (to_string(value) == name) return;
    known += (known.empty() ? "" : ", ") + std::string(to_string(value));
  }
  json.fail(fmt::format("{} is not known; there are {}", in_quotes(name), known));
}
void read(const JsonValue& json, DataType& value) { read_name(json, value, DataType::i64); }
void read(const JsonValue& json, TensorKind& value) { read_name(json, value, TensorKind::token); }
void read(const JsonValue& json, Initial::Kind& value) { read_name(json, value, Initial::Kind::positions); }
void read(const JsonValue& json, Phase& value) { read_name(json, value, Phase::update); }
void read(const JsonValue& json, Initial& initial);
void read(const JsonValue& json, PartOf& part);
void read(const JsonValue& json, Attributes& attributes);

/// Reads a key where it is there; else the value stays as it is.
template <class Value>
void read_if(const JsonObject& object, std::string_view key, Value& value) {
  if (const auto found = object.find(key)) read(*found, value);
}

/// Calls visit for every element of an array where the key is there.
template <class Visit>
void for_each_of(const JsonObject& object, std::string_view key, Visit visit) {
  const auto found = object.find(key);
  if (!found) return;
  const std::size_t size = found->size();
  for (std::size_t i = 0; i < size; ++i) visit((*found)[i]);
}

void read(const JsonValue& json, Initial& initial) {
  const JsonObject object(json, graph_keys::kInitial);
  read(object.need("kind"), initial.kind);
  read_if(object, "a", initial.a);
  read_if(object, "b", initial.b);
}

void read(const JsonValue& json, PartOf& part) {
  const JsonObject object(json, graph_keys::kPartOf);
  read(object.need("name"), part.name);
  read(object.need("first"), part.first);
  read(object.need("rows"), part.rows);
}

std::int64_t read_whole(const JsonValue& json) {
  const nlohmann::json& value = json.json();
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(kMost)))
    json.fail("a whole number of 63 bits is wanted");
  return value.get<std::int64_t>();
}

AttributeValue read_attribute(const JsonValue& json) {
  const nlohmann::json& value = json.json();
  if (value.is_boolean()) return json.flag();
  if (value.is_string()) return json.text();
  if (value.is_number_integer()) return read_whole(json);
  if (value.is_number()) return json.number();
  if (!value.is_array()) json.fail("true or false, a number, a string or a list of whole numbers is wanted");
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < json.size(); ++i) numbers.push_back(read_whole(json[i]));
  return numbers;
}

void read(const JsonValue& json, Attributes& attributes) {
  if (!json.json().is_object())
    json.fail(fmt::format("an object is wanted, not {}", json.json().type_name()));
  for (const auto& [name, value] : json.json().items()) {
    if (name.empty()) json.fail("an attribute has a name");
    attributes.set(name, read_attribute({value, fmt::format("{}.{}", json.place(), name)}));
  }
}

bool outlives_the_step(TensorKind kind) {
  return kind == TensorKind::weight || kind == TensorKind::optimizer_state || kind == TensorKind::token;
}

Tensor read_tensor(const JsonValue& json) {
  const JsonObject object(json, graph_keys::kTensor);
  Tensor tensor;
  read(object.need("name"), tensor.name);
  read_if(object, "bytes", tensor.bytes);
  if (const auto shape = object.find("shape")) {
    read(*shape, tensor.shape);
    read_if(object, "type", tensor.type);
    const auto size = checked_size(tensor.shape, tensor.type);
    if (!size) shape->fail("there are more bytes in this shape than 63 bits count");
    if (!object.find("bytes")) tensor.bytes = *size;
  } else {
    if (!object.find("bytes")) object.fail("a tensor needs a shape or bytes");
    if (const auto type = object.find("type")) type->fail("a type needs a shape; a tensor of bytes has none");
    tensor.type = DataType::u8;
    tensor.shape = {static_cast<std::int64_t>(tensor.bytes.count)};
  }
  read_if(object, "kind", tensor.kind);
  tensor.persistent = outlives_the_step(tensor.kind);
  read_if(object, "persistent", tensor.persistent);
  read_if(object, "layout", tensor.layout);
  read_if(object, "initial", tensor.initial);
  if (object.find("part_of")) read_if(object, "part_of", tensor.part_of.emplace());
  return tensor;
}

Variant read_variant(const JsonValue& json) {
  const JsonObject object(json, graph_keys::kVariant);
  Variant variant;
  read_if(object, "name", variant.name);
  read_if(object, "workspace", variant.workspace);
  if (const auto time = object.find("time")) {
    double seconds = 0;
    read(*time, seconds);
    variant.time = Seconds(seconds);
  }
  return variant;
}

class Reader {
 public:
  Graph run(const JsonValue& json) {
    const JsonObject object =
        open_format(json, {"graph", graph_keys::kFormat, graph_keys::kVersion}, graph_keys::kGraph);
    read_if(object, "name", graph_.name);
    graph_.layers = {"all"};
    if (object.find("layers")) graph_.layers.clear();
    for_each_of(object, "layers", [&](const JsonValue& layer) { graph_.layers.push_back(layer.text()); });
    object.need("tensors");
    for_each_of(object, "tensors", [&](const JsonValue& tensor) { add_tensor(tensor); });
    object.need("kernels");
    for_each_of(object, "kernels",
                [&](const JsonValue& kernel) { graph_.kernels.push_back(read_kernel(kernel)); });
    for_each_of(object, "results",
                [&](const JsonValue& result) { graph_.results.push_back(tensor_named(result)); });
    return std::move(graph_);
  }

 private:
  void add_tensor(const JsonValue& json) {
    graph_.tensors.push_back(read_tensor(json));
    const TensorId id{static_cast<std::uint32_t>(graph_.tensors.size() - 1)};
    if (!ids_.emplace(graph_.tensors.back().name, id).second)
      json.fail(fmt::format("there are two tensors named {}", in_quotes(graph_.tensors.back().name)));
  }

  TensorId tensor_named(const JsonValue& json) const {
    const auto found = ids_.find(json.text());
    if (found == ids_.end()) json.fail(fmt::format("there is no tensor named {}", in_quotes(json.text())));
    return found->second;
  }

  /// The name of a tensor alone, or an object that says how it is seen.
  Operand read_operand(const JsonValue& json) const {
    const auto whole = [&](TensorId id) { return Operand{id, graph_[id].shape, graph_[id].bytes, {}}; };
    if (json.json().is_string()) return whole(tensor_named(json));
    const JsonObject object(json, graph_keys::kOperand);
    Operand operand = whole(tensor_named(object.need("tensor")));
    read_if(object, "shape", operand.shape);
    read_if(object, "touched", operand.touched);
    read_if(object, "layout", operand.layout);
    return operand;
  }

  Kernel read_kernel(const JsonValue& json) const {
    const JsonObject object(json, graph_keys::kKernel);
    Kernel kernel;
    read(object.need("name"), kernel.name);
    read_operation(object, kernel);
    for_each_of(object, "inputs", [&](const JsonValue& in) { kernel.inputs.push_back(read_operand(in)); });
    for_each_of(object, "outputs",
                [&](const JsonValue& out) { kernel.outputs.push_back(read_operand(out)); });
    if (const auto workspace = object.find("workspace")) kernel.workspace = tensor_named(*workspace);
    for_each_of(object, "in_place",
                [&](const JsonValue& pair) { read(pair, kernel.in_place.emplace_back()); });
    read_if(object, "flops", kernel.flops);
    read_if(object, "layer", kernel.layer);
    read_if(object, "phase", kernel.phase);
    for_each_of(object, "variants",
                [&](const JsonValue& variant) { kernel.variants.push_back(read_variant(variant)); });
    return kernel;
  }

  static void read_operation(const JsonObject& object, Kernel& kernel) {
    const JsonValue name = object.need("operation");
    if (name.text().empty()) name.fail("an operation has a name");
    kernel.operation = name.text();
    read_if(object, "attributes", kernel.attributes);
  }

  Graph graph_;
  std::unordered_map<std::string, TensorId> ids_;
};

}  // namespace

Result<Graph> graph_from_json(std::string_view text) {
  return read_json(text, "graph", [](const JsonValue& json) {
    Graph graph = Reader().run(json);
    refuse_unless(validate(graph));
    return graph;
  });
}

}  // namespace terrace

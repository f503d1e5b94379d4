#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "graph/json_keys.hpp"
#include "nn/attribute_fields.hpp"
#include "terrace/graph_json.hpp"

namespace terrace {
namespace {

using Json = nlohmann::ordered_json;

/// The shortest text that means this float, as a double that means it too.
double as_double(float value) {
  const double shortest = std::strtod(fmt::format("{}", value).c_str(), nullptr);
  const bool fits = std::abs(shortest) <= static_cast<double>(std::numeric_limits<float>::max());
  return fits && static_cast<float>(shortest) == value ? shortest : static_cast<double>(value);
}

Json number(float value) { return as_double(value); }
Json number(bool value) { return value; }
Json number(std::int64_t value) { return value; }
Json number(std::uint32_t value) { return value; }
Json number(const Window::Pair& pair) { return {pair[0], pair[1]}; }

Json attributes_json(const Attributes& attributes) {
  Json json = Json::object();
  const auto write = [&](const char* name, const auto& value) { json[name] = number(value); };
  std::visit([&](const auto& held) { for_each_field(held, write); }, attributes);
  return json;
}

Json shape_json(const Shape& shape) {
  Json json = Json::array();
  for (const std::int64_t extent : shape) json.push_back(extent);
  return json;
}

Json tensor_json(const Tensor& tensor) {
  Json json{{"name", tensor.name},
            {"shape", shape_json(tensor.shape)},
            {"type", to_string(tensor.type)},
            {"kind", to_string(tensor.kind)},
            {"persistent", tensor.persistent},
            {"bytes", tensor.bytes.count}};
  if (!tensor.layout.empty()) json["layout"] = tensor.layout;
  if (tensor.initial != Initial{}) {
    json["initial"] = {{"kind", to_string(tensor.initial.kind)},
                       {"a", as_double(tensor.initial.a)},
                       {"b", as_double(tensor.initial.b)}};
  }
  if (tensor.part_of) {
    json["part_of"] = {
        {"name", tensor.part_of->name}, {"first", tensor.part_of->first}, {"rows", tensor.part_of->rows}};
  }
  return json;
}

Json operands_json(const Graph& graph, const std::vector<Operand>& operands) {
  Json json = Json::array();
  for (const Operand& operand : operands) {
    Json one{{"tensor", graph[operand.tensor].name},
             {"shape", shape_json(operand.shape)},
             {"touched", operand.touched.count}};
    if (!operand.layout.empty()) one["layout"] = operand.layout;
    json.push_back(std::move(one));
  }
  return json;
}

Json variants_json(const std::vector<Variant>& variants) {
  Json json = Json::array();
  for (const Variant& variant : variants) {
    Json one{{"name", variant.name}, {"workspace", variant.workspace.count}};
    if (variant.time) one["time"] = variant.time->count();
    json.push_back(std::move(one));
  }
  return json;
}

Json kernel_json(const Graph& graph, const Kernel& kernel) {
  Json json{
      {"name", kernel.name},
      {"operation", kernel.foreign.empty() ? std::string(to_string(kernel.operation)) : kernel.foreign}};
  if (kernel.attributes.index() != 0) json["attributes"] = attributes_json(kernel.attributes);
  json["inputs"] = operands_json(graph, kernel.inputs);
  json["outputs"] = operands_json(graph, kernel.outputs);
  if (kernel.workspace) json["workspace"] = graph[kernel.workspace].name;
  if (!kernel.in_place.empty()) {
    Json& pairs = json["in_place"] = Json::array();
    for (const InPlacePair& pair : kernel.in_place) pairs.push_back({pair.input, pair.output});
  }
  json["flops"] = kernel.flops;
  json["layer"] = kernel.layer;
  json["phase"] = to_string(kernel.phase);
  if (!kernel.variants.empty()) json["variants"] = variants_json(kernel.variants);
  return json;
}

/// `[` the elements, one per line `]`.
template <class Element, class Write>
std::string lines(const std::vector<Element>& elements, Write write) {
  std::string text = "[";
  for (const Element& element : elements) {
    text += text.size() == 1 ? "\n" : ",\n";
    text += write(element).dump();
  }
  return text + "\n]";
}

std::string graph_text(const Graph& graph) {
  Json results = Json::array();
  for (const TensorId id : graph.results) results.push_back(graph[id].name);
  return fmt::format(
      "{{\"format\": \"{}\", \"version\": {}, \"name\": {},\n\"layers\": {},\n\"tensors\": {},\n"
      "\"kernels\": {},\n\"results\": {}}}\n",
      graph_keys::kFormat, graph_keys::kVersion, Json(graph.name).dump(), Json(graph.layers).dump(),
      lines(graph.tensors, tensor_json),
      lines(graph.kernels, [&](const Kernel& kernel) { return kernel_json(graph, kernel); }), results.dump());
}

}  // namespace

std::string to_json_text(const Graph& graph) {
  const auto valid = validate(graph);
  check(valid.ok(), valid.ok() ? "" : valid.error().message.c_str());
  try {
    return graph_text(graph);
  } catch (const Json::type_error&) {
    check(false, "the names of a graph that is written are UTF-8");
    throw;
  }
}

}  // namespace terrace

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "base/shortest_double.hpp"
#include "graph/json_keys.hpp"
#include "terrace/graph_json.hpp"

namespace terrace {
namespace {

using Json = nlohmann::ordered_json;

Json attributes_json(const Attributes& attributes) {
  Json json = Json::object();
  for (const Attribute& attribute : attributes)
    std::visit([&](const auto& value) { json[attribute.name] = value; }, attribute.value);
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
                       {"a", shortest_double(tensor.initial.a)},
                       {"b", shortest_double(tensor.initial.b)}};
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
  Json json{{"name", kernel.name}, {"operation", kernel.operation}};
  if (!kernel.attributes.empty()) json["attributes"] = attributes_json(kernel.attributes);
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

#include <fmt/format.h>

#include "base/stable_hash.hpp"
#include "graph/attribute_fields.hpp"
#include "terrace/plan.hpp"

namespace terrace {
namespace {

std::string hexadecimal(const StableHash& hash) { return fmt::format("{:016x}", hash.value()); }

/// Adds a graph piece by piece. Every list begins with its length, so that no two graphs give the same bytes.
/// Names and layers are left out: a plan knows tensors and kernels by their places.
class GraphHash {
 public:
  std::string run(const Graph& graph) {
    hash_.number(graph.tensors.size());
    for (const Tensor& tensor : graph.tensors) add(tensor);
    hash_.number(graph.kernels.size());
    for (const Kernel& kernel : graph.kernels) add(kernel);
    hash_.number(graph.results.size());
    for (const TensorId result : graph.results) hash_.number(result.index);
    return hexadecimal(hash_);
  }

 private:
  void add(const Shape& shape) {
    hash_.number(shape.rank());
    for (const std::int64_t extent : shape) hash_.number(extent);
  }
  void add(const Window::Pair& pair) {
    for (const std::int64_t extent : pair) hash_.number(extent);
  }
  template <class Number>
  void add(Number value) requires std::is_arithmetic_v<Number> {
    hash_.number(value);
  }

  void add(const Tensor& tensor) {
    hash_.number(tensor.bytes.count);
    hash_.number(static_cast<unsigned>(tensor.kind));
    hash_.number(tensor.persistent);
    hash_.number(static_cast<unsigned>(tensor.type));
    add(tensor.shape);
    hash_.text(tensor.layout);
  }

  void add(const std::vector<Operand>& operands) {
    hash_.number(operands.size());
    for (const Operand& operand : operands) {
      hash_.number(operand.tensor.index);
      add(operand.shape);
      hash_.number(operand.touched.count);
      hash_.text(operand.layout);
    }
  }

  void add(const std::vector<Variant>& variants) {
    hash_.number(variants.size());
    for (const Variant& variant : variants) {
      hash_.text(variant.name);
      hash_.number(variant.workspace.count);
      hash_.number(variant.time.has_value());
      hash_.number(variant.time.value_or(Seconds{0}).count());
    }
  }

  void add(const Kernel& kernel) {
    hash_.number(static_cast<unsigned>(kernel.operation));
    hash_.text(kernel.foreign);
    std::visit([&](const auto& held) { for_each_field(held, [&](const char*, const auto& v) { add(v); }); },
               kernel.attributes);
    add(kernel.inputs);
    add(kernel.outputs);
    hash_.number(kernel.workspace.index);
    hash_.number(kernel.flops);
    add(kernel.variants);
  }

  StableHash hash_;
};

}  // namespace

std::string fingerprint(const Graph& graph) { return GraphHash().run(graph); }

std::string fingerprint(const Plan& plan) {
  StableHash hash;
  hash.text(to_json(plan));
  return hexadecimal(hash);
}

}  // namespace terrace

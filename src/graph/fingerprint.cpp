#include "base/fingerprint.hpp"
#include "terrace/graph.hpp"

namespace terrace {
namespace {

/// Adds a graph piece by piece. Every list begins with its length, so that no two graphs give the same bytes.
/// Names and layers are left out: a plan knows tensors and kernels by their places.
class GraphHash {
 public:
  std::string run(const Graph& graph) {
    hash_.add(graph.tensors.size());
    for (const Tensor& tensor : graph.tensors) add(tensor);
    hash_.add(graph.kernels.size());
    for (const Kernel& kernel : graph.kernels) add(kernel);
    hash_.add(graph.results.size());
    for (const TensorId result : graph.results) hash_.add(result.index);
    return hash_.text();
  }

 private:
  void add(const Shape& shape) {
    hash_.add(shape.rank());
    for (const std::int64_t extent : shape) hash_.add(extent);
  }
  void add(const std::vector<std::int64_t>& numbers) {
    hash_.add(numbers.size());
    for (const std::int64_t number : numbers) hash_.add(number);
  }
  void add(const std::string& text) { hash_.add(text); }
  template <class Number>
  void add(Number value) requires std::is_arithmetic_v<Number> {
    hash_.add(value);
  }
  void add(const Attributes& attributes) {
    hash_.add(attributes.size());
    for (const Attribute& attribute : attributes) {
      hash_.add(attribute.name);
      hash_.add(attribute.value.index());
      std::visit([&](const auto& value) { add(value); }, attribute.value);
    }
  }

  void add(const Tensor& tensor) {
    hash_.add(tensor.bytes.count);
    hash_.add(static_cast<unsigned>(tensor.kind));
    hash_.add(tensor.persistent);
    hash_.add(static_cast<unsigned>(tensor.type));
    add(tensor.shape);
    hash_.add(tensor.layout);
  }

  void add(const std::vector<Operand>& operands) {
    hash_.add(operands.size());
    for (const Operand& operand : operands) {
      hash_.add(operand.tensor.index);
      add(operand.shape);
      hash_.add(operand.touched.count);
      hash_.add(operand.layout);
    }
  }

  void add(const std::vector<Variant>& variants) {
    hash_.add(variants.size());
    for (const Variant& variant : variants) {
      hash_.add(variant.name);
      hash_.add(variant.workspace.count);
      hash_.add(variant.time.has_value());
      hash_.add(variant.time.value_or(Seconds{0}).count());
    }
  }

  void add(const Kernel& kernel) {
    hash_.add(kernel.operation);
    add(kernel.attributes);
    add(kernel.inputs);
    add(kernel.outputs);
    hash_.add(kernel.workspace.index);
    hash_.add(kernel.flops);
    add(kernel.variants);
  }

  Fingerprint hash_;
};

}  // namespace

std::string fingerprint(const Graph& graph) { return GraphHash().run(graph); }

}  // namespace terrace

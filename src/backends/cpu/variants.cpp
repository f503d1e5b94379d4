// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/variants.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/instantiate.hpp"
#include "graph/variant.hpp"
#include "math/random.hpp"
#include "terrace/operation.hpp"

namespace terrace::cpu {
namespace {

using namespace literals;

/// Beyond this, trying takes longer than a better variant could bring.
constexpr Bytes kMostOperands = 64_MiB;
/// So many results cannot all be alike by chance where sums are made in different orders.
constexpr std::int64_t kFewestResults = 4096;

std::vector<float> random_numbers(const Graph& graph, const Operand& operand, std::uint32_t stream) {
  std::vector<float> numbers(graph[operand.tensor].bytes.count / sizeof(float));
  math::fill_uniform(numbers.data(), static_cast<std::int64_t>(numbers.size()), -1, 1, {0, 0, stream});
  return numbers;
}

/// The two factors of a matrix product, and what variants of it make of them.
class Experiment {
 public:
  Experiment(const Graph& graph, const Kernel& kernel)
      : graph_(graph),
        a_(random_numbers(graph, kernel.inputs[0], 1)),
        b_(random_numbers(graph, kernel.inputs[1], 2)) {}

  std::vector<float> run(const Kernel& variant) {
    std::vector<float> result(graph_[variant.outputs[0].tensor].bytes.count / sizeof(float));
    std::vector<std::byte> scratch(variant.workspace ? graph_[variant.workspace].bytes.count : 0);
    std::byte* const operands[] = {bytes(a_), bytes(b_), bytes(result), scratch.data()};
    instantiate(graph_, variant)->run(operands, {});
    return result;
  }

 private:
  static std::byte* bytes(std::vector<float>& numbers) {
    return reinterpret_cast<std::byte*>(numbers.data());
  }

  const Graph& graph_;
  std::vector<float> a_, b_;
};

bool is_worth_trying(const Graph& graph, const Kernel& kernel) {
  if (operation_of(kernel) != Operation::matmul || !kernel.workspace) return false;
  const Operand& result = kernel.outputs[0];
  const Bytes operands = graph[kernel.inputs[0].tensor].bytes + graph[kernel.inputs[1].tensor].bytes +
                         2 * graph[result.tensor].bytes;
  return operands <= kMostOperands && result.shape.elements() >= kFewestResults;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<Variant> variants_of(const Graph& graph, const Kernel& kernel) {
  std::vector<Variant> variants = kernel.variants;
  for (const Recipe& other : alternatives(*recipe(kernel, descs_of(graph, kernel)))) {
    if (other.scratch() < variants.front().workspace)
      variants.push_back({other.primitive.impl_info_str(), other.scratch(), {}});
  }
  if (variants.size() == 1) return variants;
  Experiment experiment(graph, kernel);
  Kernel all = kernel;
  all.variants = variants;
  const std::vector<float> expected = experiment.run(as_variant(all, 0));
  for (std::uint32_t i = 1; i < all.variants.size(); ++i) {
    if (same_bits(experiment.run(as_variant(all, i)), expected)) continue;
    std::erase(variants, all.variants[i]);
  }
  return variants;
}

/// Returns whether two matrix products agree in all that their bits depend on beside their operands' numbers.
bool are_alike(const Kernel& a, const Kernel& b) {
  return a.attributes == b.attributes && a.inputs[0].shape == b.inputs[0].shape &&
         a.inputs[1].shape == b.inputs[1].shape;
}

}  // namespace

Graph with_variants(Graph graph) {
  std::vector<const Kernel*> tried;
  for (Kernel& kernel : graph.kernels) {
    if (!is_worth_trying(graph, kernel)) continue;
    const auto known = std::find_if(tried.begin(), tried.end(),
                                    [&](const Kernel* other) { return are_alike(*other, kernel); });
    kernel.variants = known != tried.end() ? (*known)->variants : variants_of(graph, kernel);
    if (known == tried.end()) tried.push_back(&kernel);
  }
  return graph;
}

Graph with_direct_convolutions(Graph graph) {
  for (Kernel& kernel : graph.kernels) {
    const auto direct = direct_convolution(kernel, descs_of(graph, kernel));
    if (!direct || direct->scratch() > Bytes{} || kernel.variants.size() != 1 || !kernel.workspace) continue;
    kernel.variants.push_back({direct->primitive.impl_info_str(), Bytes{}, {}});
  }
  return graph;
}

}  // namespace terrace::cpu

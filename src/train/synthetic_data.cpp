// SPDX-License-Identifier: Apache-2.0
#include "train/synthetic_data.hpp"

#include <algorithm>
#include <optional>

#include "base/check.hpp"
#include "math/random.hpp"
#include "terrace/operation.hpp"

namespace terrace {
namespace {

/// Streams of random numbers from here on are for data alone; dropout numbers its own from zero.
constexpr std::uint32_t kFirstStream = 1U << 31;

/// Returns how many different integers a kernel knows that reads them from this tensor, if it is one that
/// does.
std::optional<std::int64_t> range_of(const Kernel& kernel, TensorId id) {
  const bool embeds = operation_of(kernel) == Operation::embedding;
  if (!embeds && operation_of(kernel) != Operation::cross_entropy) return std::nullopt;
  if (kernel.inputs[1].tensor != id) return std::nullopt;
  const Shape& known = kernel.inputs[0].shape;
  if (!embeds) return known.back();
  const std::int64_t whole = attributes_as<EmbeddingAttributes>(kernel).rows;
  return whole > 0 ? whole : known[0];
}

std::int32_t bound_of(const Graph& graph, TensorId id) {
  std::optional<std::int64_t> bound;
  for (const Kernel& kernel : graph.kernels) {
    if (const auto range = range_of(kernel, id)) bound = std::min(*range, bound.value_or(*range));
  }
  check(bound.has_value(), "an integer input is a label or an index");
  return static_cast<std::int32_t>(*bound);
}

}  // namespace

SyntheticData::SyntheticData(const Graph& graph, std::uint64_t seed) : seed_(seed) {
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (tensor.kind != TensorKind::input || tensor.persistent) continue;
    inputs_.push_back({tensor.name, tensor.type == DataType::i32 ? bound_of(graph, {i}) : 0});
  }
}

void SyntheticData::fill(std::uint64_t step, Trainer& trainer) {
  math::RandomKey key{seed_, static_cast<std::uint32_t>(step), kFirstStream};
  for (const Input& input : inputs_) {
    if (input.bound > 0) {
      const auto values = trainer.integer_input(input.name);
      math::fill_integers(values.data(), static_cast<std::int64_t>(values.size()), input.bound, key);
    } else {
      const auto values = trainer.input(input.name);
      math::fill_normal(values.data(), static_cast<std::int64_t>(values.size()), 0, 1, key);
    }
    ++key.stream;
  }
}

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
#include "train/padded_data.hpp"

#include "base/check.hpp"
#include "math/shape.hpp"

namespace terrace {
namespace {

/// Sets everything from `length` on along the axis.
void pad(std::span<std::int32_t> values, const Shape& shape, std::size_t axis, std::int64_t length,
         std::int32_t padding) {
  check(axis < shape.rank() && length <= shape[axis], "the graph holds the sequence");
  const std::int64_t inner = shape.elements_from(axis + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (static_cast<std::int64_t>(i) / inner % shape[axis] >= length) values[i] = padding;
  }
}

}  // namespace

PaddedData::PaddedData(const Graph& graph, std::uint64_t seed, Lengths lengths, std::size_t axis)
    : data_(graph, seed), seed_(seed), lengths_(std::move(lengths)), axis_(axis) {}

void PaddedData::fill(std::uint64_t step, Trainer& trainer) {
  data_.fill(step, trainer);
  for (const Tensor& tensor : trainer.program().graph.tensors) {
    if (tensor.kind != TensorKind::input || tensor.persistent || tensor.type != DataType::i32) continue;
    const std::int32_t padding = tensor.name.starts_with("target") ? math::kIgnoredLabel : 0;
    pad(trainer.integer_input(tensor.name), tensor.shape, axis_, length(step), padding);
  }
}

}  // namespace terrace

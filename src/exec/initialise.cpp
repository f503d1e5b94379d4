// SPDX-License-Identifier: Apache-2.0
#include "exec/initialise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <list>
#include <map>
#include <span>
#include <vector>

#include "math/random.hpp"

namespace terrace {
namespace {

void fill(const Tensor& tensor, const math::RandomKey& key, float* values) {
  const Initial& initial = tensor.initial;
  const auto n = tensor.shape.elements();
  // A part holds what those rows of the whole would.
  const auto begin = tensor.part_of ? tensor.part_of->first * tensor.shape.elements_from(1) : 0;
  switch (initial.kind) {
    case Initial::Kind::constant:
      std::fill_n(values, n, initial.a);
      break;
    case Initial::Kind::uniform:
      math::fill_uniform(values, n, initial.a, initial.b, key, begin);
      break;
    case Initial::Kind::normal:
      math::fill_normal(values, n, initial.a, initial.b, key, begin);
      break;
    case Initial::Kind::undefined:
    case Initial::Kind::positions:
      std::fill_n(values, n, 0.0F);
      break;
  }
}

std::uint16_t bf16_bits(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

/// Ten bits of mantissa, five of exponent. What is too small becomes zero, what is too large infinite.
std::uint16_t f16_bits(float value) {
  constexpr int kBias = 15;
  int exponent = 0;
  const float mantissa = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int biased = exponent - 1 + kBias;
  if (mantissa == 0 || biased <= 0) return sign;
  if (biased > 2 * kBias) return sign | 0x7C00;
  return static_cast<std::uint16_t>(sign | biased << 10 | static_cast<int>((2 * mantissa - 1) * 1024));
}

/// Memory that is free before the first step, handed out once: a second copy of the largest weight would
/// count in the peak of the process.
class Scratch {
 public:
  explicit Scratch(std::span<std::byte> spare) : spare_(spare) {}

  std::byte* take(Bytes bytes) {
    const std::size_t size = round_up(bytes, Bytes{64}).count;
    if (size > spare_.size()) return own_.emplace_back(bytes.count).data();
    std::byte* taken = spare_.data();
    spare_ = spare_.subspan(size);
    return taken;
  }

 private:
  std::span<std::byte> spare_;
  std::list<std::vector<std::byte>> own_;  // where there is too little
};

template <class Number>
void convert(const float* values, std::int64_t n, std::byte* at) {
  std::transform(values, values + n, reinterpret_cast<Number*>(at),
                 [](float value) { return static_cast<Number>(value); });
}

/// Initial values are floats; other types hold the nearest number they have towards zero. pre: row-major
void convert(const float* values, const Tensor& tensor, std::byte* at) {
  const std::int64_t n = tensor.shape.elements();
  switch (tensor.type) {
    case DataType::f32:
      return convert<float>(values, n, at);
    case DataType::f64:
      return convert<double>(values, n, at);
    case DataType::i32:
      return convert<std::int32_t>(values, n, at);
    case DataType::i64:
      return convert<std::int64_t>(values, n, at);
    case DataType::u8:
      return convert<std::uint8_t>(values, n, at);
    case DataType::f16:
    case DataType::bf16:
      std::transform(values, values + n, reinterpret_cast<std::uint16_t*>(at),
                     tensor.type == DataType::f16 ? f16_bits : bf16_bits);
  }
}

void fill_positions(const Tensor& tensor, std::byte* at) {
  auto* values = reinterpret_cast<std::int32_t*>(at);
  const auto period = static_cast<std::int64_t>(tensor.initial.a);
  for (std::int64_t i = 0; i < tensor.shape.elements(); ++i)
    values[i] = static_cast<std::int32_t>(i % period);
}

/// `at` takes the tensor as it is stored.
void fill_stored(const Graph& graph, const Backend& backend, TensorId id, const math::RandomKey& key,
                 std::byte* at, Scratch& scratch) {
  const Tensor& tensor = graph[id];
  // The padding of a layout holds zeros, and kernels keep it so.
  std::memset(at, 0, tensor.bytes.count);
  if (tensor.initial.kind == Initial::Kind::positions) return fill_positions(tensor, at);
  const bool floats = tensor.type == DataType::f32;
  if (floats && tensor.layout.empty()) return fill(tensor, key, reinterpret_cast<float*>(at));
  if (!floats && tensor.initial.kind == Initial::Kind::undefined) return;
  std::byte* values = scratch.take({static_cast<std::uint64_t>(tensor.shape.elements()) * sizeof(float)});
  fill(tensor, key, reinterpret_cast<float*>(values));
  if (floats) return backend.from_row_major(graph, id, values, at);
  convert(reinterpret_cast<const float*>(values), tensor, at);
}

void initialise_one(const Graph& graph, TensorId id, const math::RandomKey& key, const Store& store,
                    std::span<std::byte> spare) {
  Scratch scratch(spare);
  std::byte* memory = store.memory(id);
  std::byte* stored = memory != nullptr ? memory : scratch.take(graph[id].bytes);
  fill_stored(graph, store.backend(), id, key, stored, scratch);
  store.keep(id, {stored, graph[id].bytes.count});
}

}  // namespace

bool is_constant(const Tensor& tensor) {
  return tensor.persistent && tensor.initial.kind == Initial::Kind::positions;
}

void initialise(const Graph& graph, std::uint64_t seed, const Store& store) {
  const std::span<std::byte> spare = store.spare();
  std::uint32_t next = 0;
  std::map<std::string_view, std::uint32_t> of_parts;  // the streams of tensors that are kept in parts
  const auto stream_of = [&](const Tensor& tensor) {
    if (!tensor.part_of) return next++;
    const auto [known, is_new] = of_parts.try_emplace(tensor.part_of->name, next);
    if (is_new) ++next;
    return known->second;
  };
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (!graph.tensors[i].persistent) continue;
    // A step that no training reaches, so that no other random numbers are these.
    const Tensor& tensor = graph.tensors[i];
    const math::RandomKey key{seed, 0xFFFFFFFFU, is_constant(tensor) ? 0 : stream_of(tensor)};
    initialise_one(graph, {i}, key, store, spare);
  }
}

void initialise_constants(const Graph& graph, const Store& store) {
  const std::span<std::byte> spare = store.spare();
  for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
    if (is_constant(graph.tensors[i])) initialise_one(graph, {i}, {}, store, spare);
  }
}

}  // namespace terrace

#include "exec/initialise.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/instantiate.hpp"
#include "kernels/cpu/math/random.hpp"

namespace terrace {
namespace {

std::vector<float> initial_values(const Tensor& tensor, const math::RandomKey& key) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
  const Initial& initial = tensor.initial;
  const auto n = tensor.shape.elements();
  switch (initial.kind) {
    case Initial::Kind::constant:
      std::fill(values.begin(), values.end(), initial.a);
      break;
    case Initial::Kind::uniform:
      if (initial.a < initial.b) math::fill_uniform(values.data(), n, initial.a, initial.b, key);
      break;
    case Initial::Kind::normal:
      math::fill_normal(values.data(), n, initial.a, initial.b, key);
      break;
    case Initial::Kind::undefined:
    case Initial::Kind::positions:
      break;
  }
  return values;
}

void fill_positions(const Tensor& tensor, std::byte* at) {
  auto* values = reinterpret_cast<std::int32_t*>(at);
  const auto period = static_cast<std::int64_t>(tensor.initial.a);
  for (std::int64_t i = 0; i < tensor.shape.elements(); ++i)
    values[i] = static_cast<std::int32_t>(i % period);
}

}  // namespace

void initialise(const Program& program, std::uint64_t seed, std::byte* arena) {
  std::uint32_t stream = 0;
  for (std::uint32_t i = 0; i < program.graph.tensors.size(); ++i) {
    const Tensor& tensor = program.graph.tensors[i];
    if (!tensor.persistent) continue;
    std::byte* at = arena + program.offsets[i];
    // The padding of a layout holds zeros, and kernels keep it so.
    std::memset(at, 0, tensor.bytes.count);
    if (tensor.initial.kind == Initial::Kind::positions) {
      fill_positions(tensor, at);
      continue;
    }
    // A step that no training reaches, so that no other random numbers are these.
    const math::RandomKey key{seed, 0xFFFFFFFFU, stream++};
    const auto values = initial_values(tensor, key);
    cpu::from_row_major(program.graph, {i}, reinterpret_cast<const std::byte*>(values.data()), at);
  }
}

}  // namespace terrace

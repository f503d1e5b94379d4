#include "exec/initialise.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "kernels/cpu/instantiate.hpp"
#include "kernels/cpu/math/random.hpp"

namespace terrace {
namespace {

void fill(const Tensor& tensor, const math::RandomKey& key, float* values) {
  const Initial& initial = tensor.initial;
  const auto n = tensor.shape.elements();
  switch (initial.kind) {
    case Initial::Kind::constant:
      std::fill_n(values, n, initial.a);
      break;
    case Initial::Kind::uniform:
      math::fill_uniform(values, n, initial.a, initial.b, key);
      break;
    case Initial::Kind::normal:
      math::fill_normal(values, n, initial.a, initial.b, key);
      break;
    case Initial::Kind::undefined:
    case Initial::Kind::positions:
      std::fill_n(values, n, 0.0F);
      break;
  }
}

/// The largest stretch of the arena that holds nothing between steps.
std::span<std::byte> spare_memory(const Program& program, std::byte* arena) {
  std::map<std::uint64_t, std::uint64_t> held;  // begin -> end
  for (std::size_t i = 0; i < program.offsets.size(); ++i) {
    const Tensor& tensor = program.graph.tensors[i];
    if (tensor.persistent) held[program.offsets[i]] = program.offsets[i] + tensor.bytes.count;
  }
  held[program.arena.count] = program.arena.count;
  std::uint64_t end = 0, begin = 0, longest = 0;
  for (const auto& [next, next_end] : held) {
    if (next > end && next - end > longest) {
      begin = end;
      longest = next - end;
    }
    end = std::max(end, next_end);
  }
  const std::uint64_t aligned = round_up(Bytes{begin}, Bytes{alignof(float)}).count;
  return {arena + aligned, begin + longest - std::min(aligned, begin + longest)};
}

/// Fills a tensor whose layout is not the row-major one, by way of memory that is free before the first step:
/// a second copy of the largest weight would count in the peak of the process.
void fill_reordered(const Program& program, TensorId id, const math::RandomKey& key, std::byte* at,
                    std::span<std::byte> spare) {
  const Tensor& tensor = program.graph[id];
  const auto n = static_cast<std::size_t>(tensor.shape.elements());
  std::vector<float> own;
  if (spare.size() < n * sizeof(float)) own.resize(n);
  float* values = own.empty() ? reinterpret_cast<float*>(spare.data()) : own.data();
  fill(tensor, key, values);
  cpu::from_row_major(program.graph, id, reinterpret_cast<const std::byte*>(values), at);
}

void fill_positions(const Tensor& tensor, std::byte* at) {
  auto* values = reinterpret_cast<std::int32_t*>(at);
  const auto period = static_cast<std::int64_t>(tensor.initial.a);
  for (std::int64_t i = 0; i < tensor.shape.elements(); ++i)
    values[i] = static_cast<std::int32_t>(i % period);
}

}  // namespace

void initialise(const Program& program, std::uint64_t seed, std::byte* arena) {
  const std::span<std::byte> spare = spare_memory(program, arena);
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
    if (tensor.layout.empty()) {
      fill(tensor, key, reinterpret_cast<float*>(at));
    } else {
      fill_reordered(program, {i}, key, at, spare);
    }
  }
}

}  // namespace terrace

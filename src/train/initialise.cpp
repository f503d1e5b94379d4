#include "train/initialise.hpp"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <span>
#include <vector>

#include "backends/cpu/instantiate.hpp"
#include "backends/cpu/math/random.hpp"

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

void fill_positions(const Tensor& tensor, std::byte* at) {
  auto* values = reinterpret_cast<std::int32_t*>(at);
  const auto period = static_cast<std::int64_t>(tensor.initial.a);
  for (std::int64_t i = 0; i < tensor.shape.elements(); ++i)
    values[i] = static_cast<std::int32_t>(i % period);
}

/// `at` takes the tensor as it is stored.
void fill_stored(const Graph& graph, TensorId id, const math::RandomKey& key, std::byte* at,
                 Scratch& scratch) {
  const Tensor& tensor = graph[id];
  // The padding of a layout holds zeros, and kernels keep it so.
  std::memset(at, 0, tensor.bytes.count);
  if (tensor.initial.kind == Initial::Kind::positions) return fill_positions(tensor, at);
  if (tensor.layout.empty()) return fill(tensor, key, reinterpret_cast<float*>(at));
  std::byte* values = scratch.take({static_cast<std::uint64_t>(tensor.shape.elements()) * sizeof(float)});
  fill(tensor, key, reinterpret_cast<float*>(values));
  cpu::from_row_major(graph, id, values, at);
}

void initialise_one(const Graph& graph, TensorId id, const math::RandomKey& key, const Store& store,
                    std::span<std::byte> spare) {
  Scratch scratch(spare);
  std::byte* memory = store.memory(id);
  std::byte* stored = memory != nullptr ? memory : scratch.take(graph[id].bytes);
  fill_stored(graph, id, key, stored, scratch);
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

#include "exec/store.hpp"

#include <algorithm>
#include <map>

#include "backends/cpu/instantiate.hpp"
#include "base/check.hpp"

namespace terrace {

Store::Store(const Graph& graph, const Machine& machine, const Plan& plan, const OpenTiers& tiers)
    : graph_(graph), tiers_(tiers) {
  Residence residence(graph, machine, plan);
  const auto add_places = [&] {
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
      if (places_[i].empty()) places_[i] = residence.places({i});
    }
  };
  places_.resize(graph.tensors.size());
  add_places();
  for (const Instruction& instruction : plan.instructions) residence.apply(instruction);
  add_places();
}

std::byte* Store::memory(TensorId tensor) const {
  for (const Place& place : places_[tensor.index]) {
    if (std::byte* at = tiers_.at(place)) return at;
  }
  return nullptr;
}

void Store::load(TensorId tensor, std::span<std::byte> stored) const {
  const std::vector<Place>& places = places_[tensor.index];
  check(!places.empty(), "the plan keeps the tensor between steps");
  check(stored.size() == graph_[tensor].bytes.count, "a tensor is loaded whole");
  if (stored.data() != memory(tensor)) tiers_.read(places.front(), stored);
}

void Store::keep(TensorId tensor, std::span<const std::byte> stored) const {
  check(!places_[tensor.index].empty(), "the plan keeps the tensor between steps");
  check(stored.size() == graph_[tensor].bytes.count, "a tensor is kept whole");
  for (const Place& place : places_[tensor.index]) {
    if (tiers_.at(place) != stored.data()) tiers_.write(stored, place);
  }
}

std::vector<float> Store::read(TensorId tensor) const {
  const Tensor& described = graph_[tensor];
  std::vector<float> values(static_cast<std::size_t>(described.shape.elements()));
  std::vector<std::byte> copy;
  const std::byte* stored = memory(tensor);
  if (stored == nullptr) {
    copy.resize(described.bytes.count);
    load(tensor, copy);
    stored = copy.data();
  }
  cpu::to_row_major(graph_, tensor, stored, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

void Store::write(TensorId tensor, std::span<const float> values) const {
  const std::size_t bytes = graph_[tensor].bytes.count;
  std::vector<std::byte> copy;
  std::byte* stored = memory(tensor);
  if (stored == nullptr) {
    copy.resize(bytes);  // zeros, as the padding of a layout is
    stored = copy.data();
  }
  cpu::from_row_major(graph_, tensor, reinterpret_cast<const std::byte*>(values.data()), stored);
  keep(tensor, {stored, bytes});
}

std::span<std::byte> Store::spare(TierId tier) const {
  if (!tiers_.is_open(tier) || tiers_.at({tier, 0}) == nullptr) return {};
  std::map<std::uint64_t, std::uint64_t> held;  // begin -> end
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Tensor& tensor = graph_.tensors[i];
    for (const Place& place : places_[i]) {
      if (tensor.persistent && place.tier == tier) held[place.offset] = place.offset + tensor.bytes.count;
    }
  }
  const std::uint64_t capacity = tiers_[tier].description().capacity.count;
  held[capacity] = capacity;
  std::uint64_t end = 0, begin = 0, longest = 0;
  for (const auto& [next, next_end] : held) {
    if (next > end && next - end > longest) {
      begin = end;
      longest = next - end;
    }
    end = std::max(end, next_end);
  }
  const std::uint64_t aligned = round_up(Bytes{begin}, Bytes{64}).count;
  return {tiers_.at({tier, aligned}), begin + longest - std::min(aligned, begin + longest)};
}

}  // namespace terrace

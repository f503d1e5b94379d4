// SPDX-License-Identifier: Apache-2.0
#include "exec/store.hpp"

#include <algorithm>
#include <map>

#include "base/check.hpp"

namespace terrace {

Store::Store(const Backend& backend, const Graph& graph, const Machine& machine, const Plan& plan,
             const OpenTiers& tiers)
    : backend_(backend), graph_(graph), tiers_(tiers) {
  Residence residence(graph, machine, plan);
  const auto add_addresses = [&] {
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
      if (addresses_[i].empty()) addresses_[i] = residence.addresses({i});
    }
  };
  addresses_.resize(graph.tensors.size());
  add_addresses();
  for (const Instruction& instruction : plan.instructions) residence.apply(instruction);
  add_addresses();
}

std::byte* Store::memory(TensorId tensor) const {
  for (const TierAddress& address : addresses_[tensor.index]) {
    if (std::byte* at = tiers_.at(address)) return at;
  }
  return nullptr;
}

void Store::load(TensorId tensor, std::span<std::byte> stored) const {
  const std::vector<TierAddress>& addresses = addresses_[tensor.index];
  check(!addresses.empty(), "the plan keeps the tensor between steps");
  check(stored.size() == graph_[tensor].bytes.count, "a tensor is loaded whole");
  if (stored.data() != memory(tensor)) tiers_.read(addresses.front(), stored);
}

void Store::keep(TensorId tensor, std::span<const std::byte> stored) const {
  check(!addresses_[tensor.index].empty(), "the plan keeps the tensor between steps");
  check(stored.size() == graph_[tensor].bytes.count, "a tensor is kept whole");
  for (const TierAddress& address : addresses_[tensor.index]) {
    if (tiers_.at(address) != stored.data()) tiers_.write(stored, address);
  }
}

void Store::read_into(TensorId tensor, std::byte* values) const {
  std::vector<std::byte> copy;
  const std::byte* stored = memory(tensor);
  if (stored == nullptr) {
    copy.resize(graph_[tensor].bytes.count);
    load(tensor, copy);
    stored = copy.data();
  }
  backend_.to_row_major(graph_, tensor, stored, values);
}

void Store::load_part(TensorId tensor, std::uint64_t begin, std::span<std::byte> stored) const {
  check(!addresses_[tensor.index].empty(), "the plan keeps the tensor between steps");
  check(begin + stored.size() <= graph_[tensor].bytes.count, "a part lies within its tensor");
  const TierAddress& whole = addresses_[tensor.index].front();
  tiers_.read({whole.tier, whole.offset + begin}, stored);
}

void Store::keep_part(TensorId tensor, std::uint64_t begin, std::span<const std::byte> stored) const {
  check(!addresses_[tensor.index].empty(), "the plan keeps the tensor between steps");
  check(begin + stored.size() <= graph_[tensor].bytes.count, "a part lies within its tensor");
  for (const TierAddress& whole : addresses_[tensor.index])
    tiers_.write(stored, {whole.tier, whole.offset + begin});
}

std::vector<float> Store::read(TensorId tensor) const {
  check(size_of(graph_[tensor].type).count == sizeof(float), "a tensor that is read as floats holds them");
  std::vector<float> values(static_cast<std::size_t>(graph_[tensor].shape.elements()));
  read_into(tensor, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

std::vector<std::byte> Store::read_bytes(TensorId tensor) const {
  std::vector<std::byte> values(row_major_bytes(graph_[tensor]).count);
  read_into(tensor, values.data());
  return values;
}

void Store::write(TensorId tensor, std::span<const float> values) const {
  write_bytes(tensor, std::as_bytes(values));
}

void Store::write_bytes(TensorId tensor, std::span<const std::byte> values) const {
  check(values.size() == row_major_bytes(graph_[tensor]).count, "a tensor is written whole");
  const std::size_t bytes = graph_[tensor].bytes.count;
  std::vector<std::byte> copy;
  std::byte* stored = memory(tensor);
  if (stored == nullptr) {
    copy.resize(bytes);  // zeros, as the padding of a layout is
    stored = copy.data();
  }
  backend_.from_row_major(graph_, tensor, values.data(), stored);
  keep(tensor, {stored, bytes});
}

std::span<std::byte> Store::spare(TierId tier) const {
  if (!tiers_.is_open(tier) || tiers_.at({tier, 0}) == nullptr) return {};
  std::map<std::uint64_t, std::uint64_t> held;  // begin -> end
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    const Tensor& tensor = graph_.tensors[i];
    for (const TierAddress& address : addresses_[i]) {
      if (tensor.persistent && address.tier == tier)
        held[address.offset] = address.offset + tensor.bytes.count;
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

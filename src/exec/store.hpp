// SPDX-License-Identifier: Apache-2.0
// Store: tensors between steps, in whatever tiers they lie then. What a plan keeps in several tiers is
// written to all of them. One thread at a time; backend, graph and
// tiers outlive it.
#pragma once

#include <span>
#include <vector>

#include "backends/backend.hpp"
#include "exec/residence.hpp"

namespace terrace {

/// How many bytes the elements take without padding.
inline Bytes row_major_bytes(const Tensor& tensor) {
  return Bytes{static_cast<std::uint64_t>(tensor.shape.elements()) * size_of(tensor.type).count};
}

class Store {
 public:
  Store(const Backend& backend, const Graph& graph, const Machine& machine, const Plan& plan,
        const OpenTiers& tiers);

  const Backend& backend() const { return backend_; }

  /// Where the tensor lies, the fastest tier first.
  std::span<const TierAddress> addresses(TensorId tensor) const { return addresses_[tensor.index]; }
  /// Where a kernel could use it, or nullptr.
  std::byte* memory(TensorId tensor) const;
  /// As the tensor is stored, padding included. `stored` may be memory(tensor) itself.
  void load(TensorId tensor, std::span<std::byte> stored) const;
  void keep(TensorId tensor, std::span<const std::byte> stored) const;
  /// The same for a part that begins so many bytes into the tensor. pre: it is within the tensor
  void load_part(TensorId tensor, std::uint64_t begin, std::span<std::byte> stored) const;
  void keep_part(TensorId tensor, std::uint64_t begin, std::span<const std::byte> stored) const;
  /// Values are in row-major order. pre: the tensor holds floats
  std::vector<float> read(TensorId tensor) const;
  void write(TensorId tensor, std::span<const float> values) const;
  /// The same for elements of any type.
  std::vector<std::byte> read_bytes(TensorId tensor) const;
  void write_bytes(TensorId tensor, std::span<const std::byte> values) const;

  /// The largest stretch of a tier that holds nothing persistent: free between steps. Empty where kernels
  /// cannot use the tier.
  std::span<std::byte> spare(TierId tier = {0}) const;

 private:
  void read_into(TensorId tensor, std::byte* values) const;

  const Backend& backend_;
  const Graph& graph_;
  const OpenTiers& tiers_;
  std::vector<std::vector<TierAddress>>
      addresses_;  // by tensor: as the plan starts, else where a step leaves it
};

}  // namespace terrace

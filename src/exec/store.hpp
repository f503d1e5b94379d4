// Store: tensors between steps, in whatever tiers they lie then. What a plan keeps in several tiers is
// written to all of them. One thread at a time; graph and tiers outlive it.
#pragma once

#include <span>
#include <vector>

#include "exec/residence.hpp"

namespace terrace {

class Store {
 public:
  Store(const Graph& graph, const Machine& machine, const Plan& plan, const OpenTiers& tiers);

  /// Where the tensor lies, the fastest tier first.
  std::span<const TierAddress> addresses(TensorId tensor) const { return addresses_[tensor.index]; }
  /// Where a kernel could use it, or nullptr.
  std::byte* memory(TensorId tensor) const;
  /// As the tensor is stored, padding included. `stored` may be memory(tensor) itself.
  void load(TensorId tensor, std::span<std::byte> stored) const;
  void keep(TensorId tensor, std::span<const std::byte> stored) const;
  /// Values are in row-major order.
  std::vector<float> read(TensorId tensor) const;
  void write(TensorId tensor, std::span<const float> values) const;

  /// The largest stretch of a tier that holds nothing persistent: free between steps. Empty where kernels
  /// cannot use the tier.
  std::span<std::byte> spare(TierId tier = {0}) const;

 private:
  const Graph& graph_;
  const OpenTiers& tiers_;
  std::vector<std::vector<TierAddress>>
      addresses_;  // by tensor: as the plan starts, else where a step leaves it
};

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// AbstractRegions: what the verifier knows of every (tensor, tier) pair, and which bytes of each tier are
// taken.
//
// It keeps and answers; what is allowed is for the verification to say.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "plan/verify_values.hpp"
#include "terrace/machine.hpp"

namespace terrace {

struct AbstractRegion {
  bool exists = false;
  bool disjoint = false;      ///< it is among the taken bytes: one that overlaps another was reported instead
  bool arriving = false;      ///< a transfer that nobody waited for yet writes it
  std::uint32_t readers = 0;  ///< transfers that nobody waited for yet read it
  std::uint32_t generation = 0;  ///< tells it from regions the pair had before
  std::uint64_t offset = 0, bytes = 0;
  ValueNumber holds = kUndefined;
};

class AbstractRegions {
 public:
  AbstractRegions(const Graph& graph, const Machine& machine)
      : tiers_(machine.tiers.size()), regions_(graph.tensors.size() * tiers_), taken_(tiers_) {}

  AbstractRegion& at(TensorId tensor, TierId tier) { return regions_[tensor.index * tiers_ + tier.index]; }
  const AbstractRegion& at(TensorId tensor, TierId tier) const {
    return regions_[tensor.index * tiers_ + tier.index];
  }

  /// A tensor whose region has some of these bytes. An empty region has none.
  std::optional<TensorId> overlapping(TierId tier, std::uint64_t offset, std::uint64_t bytes) const {
    const auto& taken = taken_[tier.index];
    if (bytes == 0) return std::nullopt;
    // The regions are disjoint: of those that begin before our end, the last one ends last.
    auto before_end = taken.lower_bound(offset + bytes);
    if (before_end == taken.begin()) return std::nullopt;
    --before_end;
    const AbstractRegion& region = at(before_end->second, tier);
    if (region.offset + region.bytes <= offset) return std::nullopt;
    return before_end->second;
  }

  /// pre: the pair has none; `disjoint`: no other region has some of its bytes
  void create(TensorId tensor, TierId tier, std::uint64_t offset, std::uint64_t bytes, bool disjoint) {
    AbstractRegion& region = at(tensor, tier);
    const std::uint32_t generation = region.generation + 1;
    region = {true, disjoint, false, 0, generation, offset, bytes, kUndefined};
    if (disjoint && bytes > 0) taken_[tier.index].emplace(offset, tensor);
  }

  /// pre: the pair has one
  void remove(TensorId tensor, TierId tier) {
    AbstractRegion& region = at(tensor, tier);
    if (region.disjoint && region.bytes > 0) taken_[tier.index].erase(region.offset);
    region.exists = false;
  }

 private:
  std::size_t tiers_;
  std::vector<AbstractRegion> regions_;                   ///< tensor by tensor
  std::vector<std::map<std::uint64_t, TensorId>> taken_;  ///< by tier: offsets of regions that are not empty
};

}  // namespace terrace

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

#include "plan/verify_lanes.hpp"
#include "plan/verify_values.hpp"

namespace terrace {

struct AbstractRegion {
  bool exists = false;
  bool disjoint = false;  ///< it is among the taken bytes: one that overlaps another was reported instead
  LaneEvent writer = {};  ///< what wrote it last
  std::uint64_t offset = 0, bytes = 0;
  ValueNumber holds = kUndefined;  ///< when its writer has ended
};

class AbstractRegions {
 public:
  AbstractRegions(const Graph& graph, const Machine& machine, std::size_t lanes)
      : tiers_(machine.tiers.size()),
        lanes_(lanes),
        regions_(graph.tensors.size() * tiers_),
        readers_(regions_.size() * lanes),
        taken_(tiers_) {}

  AbstractRegion& at(TensorId tensor, TierId tier) { return regions_[tensor.index * tiers_ + tier.index]; }
  const AbstractRegion& at(TensorId tensor, TierId tier) const {
    return regions_[tensor.index * tiers_ + tier.index];
  }

  /// By lane, the number of the last event there that reads the region since it was written; 0: none does.
  std::span<const std::uint32_t> readers(TensorId tensor, TierId tier) const {
    return {readers_.data() + (tensor.index * tiers_ + tier.index) * lanes_, lanes_};
  }
  void add_reader(TensorId tensor, TierId tier, LaneEvent reader) {
    readers_[(tensor.index * tiers_ + tier.index) * lanes_ + reader.lane] = reader.number;
  }
  /// Who writes comes after all who read before, so these need not be remembered.
  void set_writer(TensorId tensor, TierId tier, LaneEvent writer, ValueNumber value) {
    AbstractRegion& region = at(tensor, tier);
    region.writer = writer;
    region.holds = value;
    forget_readers(tensor, tier);
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
    at(tensor, tier) = {true, disjoint, {}, offset, bytes, kUndefined};
    forget_readers(tensor, tier);
    if (disjoint && bytes > 0) taken_[tier.index].emplace(offset, tensor);
  }

  /// pre: the pair has one
  void remove(TensorId tensor, TierId tier) {
    AbstractRegion& region = at(tensor, tier);
    if (region.disjoint && region.bytes > 0) taken_[tier.index].erase(region.offset);
    region.exists = false;
  }

 private:
  void forget_readers(TensorId tensor, TierId tier) {
    std::fill_n(readers_.begin() + static_cast<std::ptrdiff_t>((tensor.index * tiers_ + tier.index) * lanes_),
                lanes_, 0U);
  }

  std::size_t tiers_, lanes_;
  std::vector<AbstractRegion> regions_;                   ///< tensor by tensor
  std::vector<std::uint32_t> readers_;                    ///< region by region, by lane
  std::vector<std::map<std::uint64_t, TensorId>> taken_;  ///< by tier: offsets of regions that are not empty
};

}  // namespace terrace

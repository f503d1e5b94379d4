// SPDX-License-Identifier: Apache-2.0
// Writes a plan instruction by instruction, without offsets; they are packed when it is finished.
//
// Knows which regions exist, so that planners only say what should happen. Tensors leave tier 0 for the first
// slower tier that has room and links both ways: their spill tier.
//
//   block      what is packed as one: the regions in one tier of tensors that lie side by side, from the
//              first that is made to the last that is freed. Most tensors are alone in theirs
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/packing.hpp"
#include "terrace/plan_request.hpp"

namespace terrace {

/// How much packing searches: enough to come within a percent or two, in a fraction of a second.
constexpr PackingEffort kPlanEffort{2'000'000};

/// A finished plan and how much of every tier its regions take where they were packed: the plan is one only
/// where that fits the budget.
struct Draft {
  Plan plan;
  std::vector<Bytes> needed;
};

class PlanWriter {
 public:
  PlanWriter(const PlanRequest& request, std::string planner);

  using Group = std::uint32_t;
  static constexpr Group kAlone = ~Group{0};
  /// Keeps tensors together: their regions lie side by side in this order in every tier, and the room of all
  /// is taken while one of them is there. pre: none has a region yet or is in another group; none is given
  void keep_together(std::span<const TensorId> tensors);
  /// A group for single regions: those that are made as part of it lie side by side. pre: no tensor twice
  Group make_group(std::vector<TensorId> tensors);

  /// Gives the tensor's regions in tier 0 their place in a space in one piece that only such tensors share,
  /// as deep as they need at each moment. pre: it has no region yet and is in no group
  void reserve(TensorId tensor) { reserved_[tensor.index] = true; }

  bool has(TensorId tensor, TierId tier) const;
  /// Returns what a region of the tensor takes in a tier.
  Bytes size(TensorId tensor, TierId tier) const;
  /// Returns whether the tier has room for a region of the tensor, and for those it is kept together with.
  bool has_room(TensorId tensor, TierId tier) const;
  /// Returns the slower tier where the tensor has a region, else the one where it gets its next. Fails where
  /// no tier has room: names the bytes.
  Result<TierId> spill_tier(TensorId tensor);

  void start(TensorId tensor, TierId tier) { start(tensor, tier, group_[tensor.index]); }
  void start(TensorId tensor, TierId tier, Group group);  ///< pre: no instruction was written yet
  void alloc(TensorId tensor, TierId tier) { alloc(tensor, tier, group_[tensor.index]); }
  void alloc(TensorId tensor, TierId tier, Group group);
  /// Allocates the tensor's start region once more, where it was. pre: it was freed
  void restore(TensorId tensor, TierId tier);
  /// What the tensor has there now, until the step ends, lies where its region of the start was. pre: it has
  /// that region, or another one of its own
  void put_back(TensorId tensor, TierId tier);
  void free(TensorId tensor, TierId tier);
  std::uint32_t copy(TensorId tensor, TierId from, TierId to) { return copy(std::vector{tensor}, from, to); }
  /// Copies all as one transfer. pre: they are kept together and follow each other
  std::uint32_t copy(std::vector<TensorId> tensors, TierId from, TierId to);
  void wait(std::uint32_t ticket);
  /// Runs the variant that is fastest in tier 0.
  void run(KernelId kernel, std::vector<TierId> tiers);
  /// Runs the kernel with all operands in one tier.
  void run(KernelId kernel, TierId tier);
  void run(KernelId kernel, std::vector<TierId> tiers, std::uint32_t variant);

  Draft finish(PackingEffort effort = kPlanEffort);

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  /// One region.
  struct Stay {
    TensorId tensor;
    std::uint32_t instruction;  ///< that makes it; kNone: the start
    std::uint32_t block;
    Bytes within;  ///< where it begins in its block
  };
  struct Block {
    Bytes size;
    std::uint32_t first, last;  ///< kNone: it outlasts the step
    bool from_start;            ///< it is there when the step starts
    Group group;
    bool reserved = false;           ///< it lies in the reserve
    std::uint32_t restored = kNone;  ///< from here on it is there again; from `last` until then it is not
    std::uint32_t regions = 0;       ///< that exist now
    bool always() const { return from_start && last == kNone; }
    bool is_final() const { return !from_start && last == kNone; }
  };
  std::uint32_t& stay_of(TensorId tensor, TierId tier);
  std::uint32_t position() const { return static_cast<std::uint32_t>(plan_.instructions.size()) + 1; }
  Bytes block_size(TensorId tensor, TierId tier, Group group) const;
  bool block_is_open(TierId tier, Group group) const;
  std::uint32_t block_for(TensorId tensor, TierId tier, Group group, std::uint32_t first, bool from_start);
  void open(TensorId tensor, TierId tier, Group group, std::uint32_t instruction, std::uint32_t first);
  std::uint32_t first_restored(TierId tier) const;
  void place(TierId tier, const std::vector<std::uint64_t>& offsets);
  Packing pack_together(TierId tier, PackingEffort effort) const;
  std::optional<Packing> pack_apart(TierId tier, PackingEffort effort) const;

  const PlanRequest& request_;
  Plan plan_;
  std::vector<std::uint32_t> open_;         ///< by tensor and tier: the stay, or kNone
  std::vector<std::vector<Stay>> stays_;    ///< by tier
  std::vector<std::vector<Block>> blocks_;  ///< by tier
  std::vector<Group> group_;                ///< by tensor: of its regions where nothing else is said
  std::vector<bool> reserved_;              ///< by tensor
  std::vector<std::vector<TensorId>> groups_;
  std::vector<std::vector<std::uint32_t>> open_blocks_;  ///< by group and tier, or kNone
  std::vector<Bytes> live_;                              ///< by tier
  std::uint32_t tickets_ = 0;
};

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// The regions of a finished plan, and which of them lie side by side because one transfer carries them.
//
//   region   from the instruction that makes it to the one that frees it
//   chain    regions of one tier that lie side by side in order, as `Neighbours` knows them
#pragma once

#include <cstdint>
#include <vector>

#include "terrace/plan_request.hpp"

namespace terrace {

constexpr std::uint32_t kNoRegion = ~std::uint32_t{0};

struct PlanRegion {
  static constexpr std::uint32_t kStart = ~std::uint32_t{0}, kEnd = kStart;
  TensorId tensor;
  TierId tier;
  std::uint32_t made = kStart;  ///< the instruction; kStart: it is there when the step starts
  std::uint32_t freed = kEnd;   ///< kEnd: it is there when the step ends
  bool is_within_step() const { return made != kStart && freed != kEnd; }
  bool is_always() const { return made == kStart && freed == kEnd; }
};

/// The regions that one copy reads and writes, in the order of its tensors.
struct CopiedRegions {
  std::uint32_t instruction = 0;
  std::vector<std::uint32_t> from, to;
};

struct PlanRegions {
  std::vector<PlanRegion> all;
  std::vector<std::uint32_t> made_by;  ///< by instruction: the region, or kNoRegion
  std::vector<std::uint32_t> start;    ///< of Plan::start, in order
  std::vector<CopiedRegions> copies;   ///< in order
};

/// Whether every region is made once, where the graph and the machine have its tensor and tier, is there when
/// it ends, and is there when it is copied.
bool holds_together(const PlanRequest& request, const Plan& plan);

/// pre: holds_together(request, plan)
PlanRegions regions_of(const PlanRequest& request, const Plan& plan);

/// Which region directly follows which. Only regions of a kind follow each other: those made and freed within
/// the step, or those that are there from its start to its end. No tensor is twice in a chain.
class Neighbours {
 public:
  /// Borrows the regions.
  explicit Neighbours(const std::vector<PlanRegion>& regions);

  bool can_follow(std::uint32_t first, std::uint32_t second) const;
  /// pre: can_follow(first, second)
  void follow(std::uint32_t first, std::uint32_t second);
  /// The chain that a region is in, by any number that all of its regions share.
  std::uint32_t chain_of(std::uint32_t region) const { return chain_[region]; }
  /// The regions of a chain, in no order.
  const std::vector<std::uint32_t>& members(std::uint32_t chain) const { return members_[chain]; }
  /// The same in the order in which they lie.
  std::vector<std::uint32_t> in_order(std::uint32_t chain) const;

 private:
  const std::vector<PlanRegion>& regions_;
  std::vector<std::uint32_t> next_, before_;  ///< by region, or kNoRegion
  std::vector<std::uint32_t> chain_;          ///< by region
  std::vector<std::vector<std::uint32_t>> members_;
};

/// Lets the regions of every copy that carries several tensors follow each other. Returns whether all can.
bool add_copies(const PlanRegions& regions, Neighbours& neighbours);

}  // namespace terrace

// SPDX-License-Identifier: Apache-2.0
// Rewrites a plan so that several of its transfers become one.
#pragma once

#include "migration/plan_regions.hpp"

namespace terrace {

enum class Direction { store, fetch };

/// Transfers over one link between the same two runs.
struct MergedTransfer {
  std::vector<std::uint32_t> copies;  ///< positions in PlanRegions::copies, in the order their tensors lie
  Direction direction = Direction::store;
};

struct Rewritten {
  std::vector<Instruction> instructions;
  std::vector<std::uint32_t> was;  ///< by instruction: its place in the plan before; kAdded: it is new
  static constexpr std::uint32_t kAdded = ~std::uint32_t{0};
};

/// A merged store takes the place of its first part, with the regions that the others need; a merged fetch
/// that of its last, and what waited for the others comes after it. Whoever waited for a part waits for all.
/// Offsets are as before. pre: regions_of(plan); no copy is in two of them
Rewritten with_merged(const Plan& plan, const PlanRegions& regions,
                      const std::vector<MergedTransfer>& merged);

}  // namespace terrace

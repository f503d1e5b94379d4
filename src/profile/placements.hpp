// SPDX-License-Identifier: Apache-2.0
// Placements: where the operands of a kernel may lie, and which of these are worth measuring.
#pragma once

#include <span>
#include <vector>

#include "terrace/graph.hpp"
#include "terrace/tier_spec.hpp"

namespace terrace {

/// One tier for each input, output and the workspace, in this order.
using OperandTiers = std::vector<TierId>;

/// All combinations of tiers are measured where there are at most so many, the one with all operands in tier
/// 0 among them.
constexpr std::size_t kAllCombinations = 16;

/// The placements with operands beyond tier 0 that are worth measuring, the most telling first: for each
/// further tier all operands there, then each tensor there alone, then all other combinations where they are
/// few enough in all. Operands that are the same tensor are in the same tier. KernelClock composes the rest.
std::vector<OperandTiers> placements(const Kernel& kernel, std::span<const TierId> further);

}  // namespace terrace

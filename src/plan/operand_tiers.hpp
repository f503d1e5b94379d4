// SPDX-License-Identifier: Apache-2.0
// Where a kernel's operands lie, in the order in which a plan's `run` states it.
#pragma once

#include <vector>

#include "graph/operand_tensors.hpp"
#include "terrace/tier_spec.hpp"

namespace terrace {

/// Returns the tier of every input, every output and the workspace, by what `tier_of` says of each tensor.
template <class TierOf>
std::vector<TierId> operand_tiers(const Kernel& kernel, TierOf tier_of) {
  std::vector<TierId> tiers;
  for_each_operand_tensor(kernel, [&](TensorId tensor) { tiers.push_back(tier_of(tensor)); });
  return tiers;
}

}  // namespace terrace

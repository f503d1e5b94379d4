// SPDX-License-Identifier: Apache-2.0
// The configurations of a kernel (001 section 3.5 and 7.1.4): its implementations by where its operands lie.
//
// All placements would be as many as the number of tiers to the power of the number of operands. Therefore
// only the few operands that cost most in the second tier choose on their own, and the others share one
// choice. A placement that has some of those others in faster memory is then given a time that is at most too
// long.
#pragma once

#include <span>

#include "planners/autotm/model/instance.hpp"

namespace terrace::autotm {

/// Adds the configurations to a kernel of the instance whose operands are known; `operands` are their tensors
/// in the graph. Times are made monotone: a kernel never takes less time than with more of its operands in
/// faster memory, whatever was measured. Fails where no configuration is within the capacities.
Result<void> add_configurations(const PlanRequest& request, const KernelClock& clock, KernelId kernel,
                                std::span<const TensorId> operands, Instance& instance);

}  // namespace terrace::autotm

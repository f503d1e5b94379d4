// The configurations of a kernel (001 section 3.5 and 7.1.4): its implementations by where its operands lie.
//
// The number of tiers to the number of operands would be many: the operands beyond the few that take longest
// in the second tier share one choice. Asking for all of them at once, a configuration's time is then at most
// too long for placements that have some of them in faster memory.
#pragma once

#include <span>

#include "planners/autotm/model/instance.hpp"

namespace terrace::autotm {

/// To a kernel of the instance whose operands are known. `operands`: what these are in the graph. Times are
/// made monotone: a kernel takes at least as long as with more of its operands in faster memory, whatever was
/// measured. Fails where no configuration is within the capacities.
Result<void> add_configurations(const PlanRequest& request, const KernelClock& clock, KernelId kernel,
                                std::span<const TensorId> operands, Instance& instance);

}  // namespace terrace::autotm

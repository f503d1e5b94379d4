// The configurations of a kernel (001 section 3.5 and 7.1.4): its implementations by where its operands lie.
//
// Two to the number of operands would be many: the operands beyond the six that take longest in slow memory
// share one bit. Asking for all of them at once, a configuration's time is then at most too long for
// placements that have some of them in fast memory.
#pragma once

#include <span>

#include "planners/autotm/instance.hpp"

namespace terrace::autotm {

/// `operands`: the distinct tensors the kernel uses beside its workspace. Times are made monotone: a kernel
/// takes at least as long as with more of its operands in fast memory, whatever was measured. Fails where no
/// configuration is within the capacity.
Result<std::vector<Configuration>> configurations(const PlanRequest& request, const KernelClock& clock,
                                                  KernelId kernel, std::span<const TensorId> operands,
                                                  TierId slow, Bytes capacity);

}  // namespace terrace::autotm

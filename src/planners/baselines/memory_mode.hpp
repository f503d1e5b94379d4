// SPDX-License-Identifier: Apache-2.0
// Memory mode: what a step takes where tier 0 is a direct-mapped hardware cache with write-back over slow
// memory (the 2LM of 003). Tensors cannot be told where to be, so there is no plan, only a prediction.
#pragma once

#include "terrace/planner.hpp"

namespace terrace {

struct MemoryMode {
  Seconds step{0};
  TierId memory;  ///< the tier behind the cache
  Bytes hits, misses, written_back;
};

/// The budget of tier 0 is the cache, the slowest tier that kernels can use in place the memory, with the
/// tensors packed there. A miss, of a write too, reads its lines from there, and writes back what was
/// changed in those that make way; both on top of the kernel's time in fast memory. Of a step that follows
/// another. Fails where no slower tier can be used in place, or is too small.
Result<MemoryMode> predict_memory_mode(const PlanRequest& request);

}  // namespace terrace

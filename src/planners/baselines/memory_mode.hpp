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

/// What becomes of the addresses of tensors that are over: used again at once (003's `2LM: M`), or not before
/// the step's end, when a collector frees all (`2LM: none`).
enum class DeadMemory { reused, kept };

/// Predicts a step that follows another. The budget of tier 0 is the cache; the memory behind it is the
/// slowest tier that kernels can use in place, where the tensors are packed. A miss, of a read or a write,
/// reads its lines from memory and writes back the changed lines that they replace; both take time on top of
/// the kernel's own in fast memory. Fails where no slower tier can be used in place, or where it is too
/// small.
Result<MemoryMode> predict_memory_mode(const PlanRequest& request, DeadMemory dead = DeadMemory::reused);

}  // namespace terrace

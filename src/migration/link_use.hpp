// SPDX-License-Identifier: Apache-2.0
// What planners that move tensors beside kernels assume of a link.
#pragma once

#include "terrace/machine.hpp"

namespace terrace {

/// Returns whether both directions share one lane, as on a device that cannot do both at once.
inline bool is_one_lane(const Link& link) { return link.both_ways < 0.75; }

/// Returns how long a transfer takes while kernels run.
inline Seconds time_beside_kernels(const Link& link, Bytes size) {
  return link.time(size) / link.while_computing;
}

/// Returns how much longer kernels take because of a transfer beside them.
inline Seconds lost_to_transfer(const Link& link, Bytes size) {
  return link.compute_loss * time_beside_kernels(link, size);
}

}  // namespace terrace

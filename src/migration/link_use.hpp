// How planners that move tensors beside kernels take a link.
#pragma once

#include "terrace/machine.hpp"

namespace terrace {

/// A device that cannot do both directions at once is one lane for both.
inline bool is_one_lane(const Link& link) { return link.both_ways < 0.75; }

inline Seconds time_beside_kernels(const Link& link, Bytes size) {
  return link.time(size) / link.while_computing;
}

}  // namespace terrace

// What a region takes, as plan.hpp defines it, for all that write plans. The verifier, the simulator and the
// executor compute it themselves: they share no code with planners.
#pragma once

#include "terrace/graph.hpp"
#include "terrace/machine.hpp"

namespace terrace {

/// The tensor's bytes, rounded up to the tier's granularity.
inline Bytes region_size(const Tensor& tensor, const MachineTier& tier) {
  return round_up(tensor.bytes, tier.granularity);
}

}  // namespace terrace

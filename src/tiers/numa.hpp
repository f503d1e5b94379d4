// A numa tier is memory bound to NUMA nodes of the computer.
#pragma once

#include <memory>

#include "terrace/tier.hpp"

namespace terrace {

/// pre: spec.kind == numa
Result<std::unique_ptr<Tier>> open_numa_tier(const TierSpec& spec);

}  // namespace terrace

// Numa tier: memory bound to nodes of the computer.
#pragma once

#include <memory>

#include "terrace/tier.hpp"

namespace terrace {

/// pre: spec.kind == numa
Result<std::unique_ptr<Tier>> open_numa_tier(const TierSpec& spec);

}  // namespace terrace

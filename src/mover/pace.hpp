// Paces a tier and says where it failed: the tier knows what went wrong but not at which offset.
#pragma once

#include <cstdint>

#include "terrace/tier.hpp"

namespace terrace {

/// tier.pace(), with the offset added to the EnvironmentError it may throw.
void pace_at(Tier& tier, Access access, Bytes amount, Seconds took, std::uint64_t offset);

}  // namespace terrace

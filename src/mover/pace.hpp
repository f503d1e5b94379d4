// Paces a tier and adds the offset to its errors, which the tier itself does not know.
#pragma once

#include <cstdint>

#include "terrace/tier.hpp"

namespace terrace {

/// Calls tier.pace() and adds the offset to an EnvironmentError that it throws.
void pace_at(Tier& tier, Access access, Bytes amount, Seconds took, std::uint64_t offset);

}  // namespace terrace

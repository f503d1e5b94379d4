// Builds the error of a failed block tier, with tier, path, offset, cause and what to try.
#pragma once

#include <cstdint>

#include "terrace/error.hpp"
#include "terrace/tier.hpp"

namespace terrace {

/// `cause` is an errno; 0 means that the device reported success but moved nothing.
EnvironmentError block_error(const Tier& tier, Access access, std::uint64_t offset, int cause);

}  // namespace terrace

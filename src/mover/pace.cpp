// SPDX-License-Identifier: Apache-2.0
#include "mover/pace.hpp"

#include <fmt/format.h>

#include "terrace/error.hpp"

namespace terrace {

void pace_at(Tier& tier, Access access, Bytes amount, Seconds took, std::uint64_t offset) {
  try {
    tier.pace(access, amount, took);
  } catch (const EnvironmentError& error) {
    EnvironmentError::Place place = error.place();
    place.offset = offset;
    throw EnvironmentError(
        fmt::format("{} (at offset {} of {})", error.what(), offset, tier.description().name), place);
  }
}

}  // namespace terrace

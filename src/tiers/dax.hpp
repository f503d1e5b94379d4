// A dax tier is persistent or CXL memory, mapped from a file or from a /dev/dax device.
#pragma once

#include <memory>

#include "terrace/tier.hpp"

namespace terrace {

/// On a file system without DAX the file is mapped through the page cache, and the description says so.
/// pre: spec.kind == dax
Result<std::unique_ptr<Tier>> open_dax_tier(const TierSpec& spec);

}  // namespace terrace
